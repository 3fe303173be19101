"""Every error the core raises, as one tree; all errors of all packages are an `AdvisedError`.

HubbubError
├── ParameterError               a parameter breaks a rule: also a ValueError
│   └── SurveyError              the same, with the survey's file and key
│       └── SurveyNotFoundError  there is no such file: also a FileNotFoundError
├── WireError                    bytes that are not what they claim to be: also a ValueError
│   └── ListError                bytes that are no list of surveys, or none that a pinned key signed
└── BudgetError                  a reservation that does not exist or is already consumed

Messages name the subject, the rule and the value; never a person's true value.
"""

from __future__ import annotations

import errno
import os
import reprlib
from datetime import date, time
from typing import ClassVar, Final, Literal, TypeAlias

Advice: TypeAlias = Literal["retry", "stop"]

ListFault: TypeAlias = Literal["unsigned", "unreadable", "wrong_signature"]


class _Excerpt(reprlib.Repr):
    """A printer of values in messages: short, whatever the value is."""

    def __init__(self) -> None:
        super().__init__()
        self.maxstring = self.maxother = 80

    def repr_int(self, x: int, level: int) -> str:
        """Return an int in digits.

        Python refuses to write millions of them out, and nobody would read them.
        """
        return repr(x) if x.bit_length() <= 128 else f"an integer of {x.bit_length()} bits"

    def repr1(self, x: object, level: int) -> str:
        """Return what a survey file would have: a truth value, a date or a table as TOML writes it."""
        if isinstance(x, bool):
            return str(x).lower()
        if isinstance(x, date | time):
            return x.isoformat()
        return super().repr1(x, level)

    def repr_dict(self, x: dict[object, object], level: int) -> str:
        """Return a table in braces, its first keys alone."""
        pairs = [f"{key!s:.80} = {self.repr1(x[key], level - 1)}" for key in list(x)[: self.maxdict]]
        return "{" + ", ".join([*pairs, *(["..."] if len(x) > len(pairs) else [])]) + "}"


class _Absent:
    """The value of what a survey does not have."""

    def __repr__(self) -> str:
        return "nothing"


ABSENT: Final = _Absent()
"""The value at fault where a key or a category is missing: the message then ends with the rule."""


class AdvisedError(Exception):
    """An error that says what its caller can do.

    Attributes:
        advice: "retry" where the same call may succeed later as it stands; "stop" where somebody has to
            change something first.
    """

    advice: ClassVar[Advice] = "stop"


class HubbubError(AdvisedError):
    """An error of Hubbub's core."""


class ParameterError(HubbubError, ValueError):
    """A parameter breaks a rule; the message names the subject, the rule and the value."""


class SurveyError(ParameterError):
    """A survey that cannot be read or compiled.

    Attributes:
        file: Where the survey came from, a path or "<string>".
        key: The dotted key at fault, for example "mechanism.boost_epsilon"; "" for the whole file.
        rule: What must hold.
        value: What was found, as text, shortened where it is long; "nothing" where a key is missing.
    """

    def __init__(self, file: str, key: str, rule: str, value: object) -> None:
        self.file, self.key, self.rule, self.value = file, key, rule, _Excerpt().repr(value)
        where = f"{file}: {key}" if key else file
        super().__init__(f"{where}: {rule}" if value is ABSENT else f"{where}: {rule}, got {self.value}")

    def __reduce__(self) -> tuple[object, ...]:
        # By the finished message: a process that made the error in a pool hands it on whole.
        return type(self).__new__, (type(self), *self.args), self.__dict__


class SurveyNotFoundError(SurveyError, FileNotFoundError):
    """A survey's file that does not exist."""

    def __init__(self, file: str) -> None:
        super().__init__(file, "", "must be a readable file", os.strerror(errno.ENOENT))
        self.errno = errno.ENOENT


class WireError(HubbubError, ValueError):
    """The error of bytes that do not decode to a well-formed report, upload or record."""


class ListError(WireError):
    """A list of surveys that is not signed as it must be, or cannot be read.

    Attributes:
        reason: Which of them.
    """

    def __init__(self, reason: ListFault, message: str) -> None:
        self.reason = reason
        super().__init__(message)


class BudgetError(HubbubError):
    """A ticket that this filter did not issue, or that was already consumed."""
