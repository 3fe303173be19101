"""Every error that leaves the collector, as one tree.

CollectorError
├── SettingsError    a setting breaks a rule: also a ValueError
├── ListFileError    the signed list of surveys cannot be served as it is
├── PeriodOverError  no tokens can be given now: the issuer's clock is not trusted, or behind its record
└── NotDurableError  an upload whose record did not reach the log; the device must send it again

`Refusal` and `HungUp` (`body`) end one upload, stay within the gateway, and are no part of the tree.

Messages name the subject, the rule and the value; never an id, a symbol or a sender.
"""

from __future__ import annotations

from hubbub.errors import AdvisedError


class CollectorError(AdvisedError):
    """An error of the collector."""


class SettingsError(CollectorError, ValueError):
    """A setting breaks a rule; the message names the setting, the rule and the value."""


class ListFileError(CollectorError):
    """The signed list of surveys cannot be read, or does not fit what the gateway serves."""


class PeriodOverError(CollectorError):
    """The grants of this period are gone, or nobody knows which period it is: no token is given."""

    advice = "retry"


class NotDurableError(CollectorError):
    """The record that held an upload was not stored: it is forgotten and must not be acknowledged."""

    advice = "retry"
