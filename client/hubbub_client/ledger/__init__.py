"""The ledger: all that a device must not forget, in one SQLite file."""

from typing import TYPE_CHECKING

from hubbub.lazy import attach

if TYPE_CHECKING:
    from hubbub_client.ledger.file import Counter
    from hubbub_client.ledger.ledger import Ledger
    from hubbub_client.ledger.process_lock import ProcessLock
    from hubbub_client.ledger.stored import (
        SpentBudget,
        StoredAnswer,
        StoredAttribute,
        StoredEnrolment,
        StoredRefusal,
        StoredValue,
    )
    from hubbub_client.ledger.transcript import TranscriptEntry

__all__ = [
    "Counter",
    "Ledger",
    "ProcessLock",
    "SpentBudget",
    "StoredAnswer",
    "StoredAttribute",
    "StoredEnrolment",
    "StoredRefusal",
    "StoredValue",
    "TranscriptEntry",
]

attach(
    __name__,
    {
        "hubbub_client.ledger.file": ("Counter",),
        "hubbub_client.ledger.ledger": ("Ledger",),
        "hubbub_client.ledger.process_lock": ("ProcessLock",),
        "hubbub_client.ledger.stored": (
            "SpentBudget",
            "StoredAnswer",
            "StoredAttribute",
            "StoredEnrolment",
            "StoredValue",
            "StoredRefusal",
        ),
        "hubbub_client.ledger.transcript": ("TranscriptEntry",),
    },
)
