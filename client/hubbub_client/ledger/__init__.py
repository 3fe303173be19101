"""The ledger: all that a device must not forget, in one SQLite file."""

from typing import TYPE_CHECKING

from hubbub.lazy import attach

if TYPE_CHECKING:
    from hubbub_client.ledger.file import Counter
    from hubbub_client.ledger.ledger import Ledger
    from hubbub_client.ledger.process_lock import ProcessLock
    from hubbub_client.ledger.stored import (
        Closed,
        StoredAnswer,
        StoredAttribute,
        StoredEnrolment,
        StoredReading,
        StoredRefusal,
    )
    from hubbub_client.ledger.transcript import Row

__all__ = [
    "Closed",
    "Counter",
    "Ledger",
    "ProcessLock",
    "Row",
    "StoredAnswer",
    "StoredAttribute",
    "StoredEnrolment",
    "StoredReading",
    "StoredRefusal",
]

attach(
    __name__,
    {
        "hubbub_client.ledger.file": ("Counter",),
        "hubbub_client.ledger.ledger": ("Ledger",),
        "hubbub_client.ledger.process_lock": ("ProcessLock",),
        "hubbub_client.ledger.stored": (
            "Closed",
            "StoredAnswer",
            "StoredAttribute",
            "StoredEnrolment",
            "StoredReading",
            "StoredRefusal",
        ),
        "hubbub_client.ledger.transcript": ("Row",),
    },
)
