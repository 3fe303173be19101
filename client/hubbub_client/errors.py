"""Every error the device side raises, as one tree.

ClientError
├── LedgerError             the ledger cannot be used
│   ├── LedgerLockedError   another process, or another agent of this one, has it open
│   ├── LedgerCorruptError  it is not a ledger, or its transcript does not add up
│   ├── LedgerMissingError  there was one here and it is gone, or there is none and none may be made
│   ├── LedgerForeignError  it is another installation's: a copy, a restored backup, or swapped
│   ├── LedgerTooNewError   a later version of this software wrote it
│   └── BudgetFixedError    it was opened with another lifetime budget than the one fixed at first open
├── AttributeRefusedError   an attribute that is unknown, registered otherwise, or pinned: also a ValueError
└── TransportError          the collector cannot be reached, or does not answer in its protocol
    └── ListRefusedError    its list of surveys is not one that this device takes; `reason` says why

Messages name the subject and the rule. A person's value is in none of them, nor in a cause: whatever an inner
layer says about a value is cut off with `from None`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from hubbub.errors import Advice, AdvisedError

if TYPE_CHECKING:
    from hubbub_client.surveys.survey_lists import ListRefusal


class ClientError(AdvisedError):
    """An error of the device side."""


class LedgerError(ClientError):
    """The privacy ledger cannot be used."""


class LedgerLockedError(LedgerError):
    """The ledger is open elsewhere; two writers would spend one budget twice."""

    advice = "retry"


class LedgerCorruptError(LedgerError):
    """The file is not a ledger, or what it says does not add up."""


class LedgerMissingError(LedgerError):
    """The error that a ledger is missing where one was; a new one would renew its budget."""


class LedgerForeignError(LedgerError):
    """The ledger belongs to another installation: two copies would spend one budget twice."""


class LedgerTooNewError(LedgerError):
    """The ledger's schema is newer than this software."""


class BudgetFixedError(LedgerError):
    """The lifetime budget was fixed at first open and cannot be changed."""


class AttributeRefusedError(ClientError, ValueError):
    """An attribute is unknown, was registered with another domain or kind, or is pinned."""


class TransportError(ClientError):
    """The collector cannot be reached, or its answer is not in the protocol."""

    advice: ClassVar[Advice] = "retry"


class ListRefusedError(TransportError):
    """A list of surveys that this device does not take; of one that has expired, it stores that it was seen.

    Attributes:
        reason: See `survey_lists.ListRefusal`.
    """

    advice = "stop"

    def __init__(self, reason: ListRefusal, message: str) -> None:
        self.reason = reason
        super().__init__(message)
