"""A signed list of surveys as the ledger keeps it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StoredList:
    """The newest list of surveys that one key signed, of those seen.

    Attributes:
        key: The public key, 32 bytes.
        sequence: The list's number.
        digest: SHA-256 of its payload.
        judged_s: The latest trusted time at which it was seen, epoch seconds.
    """

    key: bytes
    sequence: int
    digest: bytes
    judged_s: float
