"""The rules for signed lists of surveys: signed by a pinned key, not expired, never an older one.

The clock may be set back; what the ledger has seen may not. A list that was seen is judged by the latest time
at which this device ever saw it, or answered a round. A newer list is judged by the clock alone: were it held
to that time too, a clock that was ahead for a minute would refuse every list for years.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final, Literal, TypeAlias

from hubbub.errors import ListError, ListFault, ParameterError
from hubbub.survey import MAX_LIFE_S, Opened, open_signed, public_key, read_unverified
from hubbub_client.errors import ClientError, ListRefusedError
from hubbub_client.surveys.stored_list import StoredList

LogRefusal: TypeAlias = Literal["unlogged", "unwitnessed", "stale_checkpoint", "log_rolled_back"]
"""Refusals of devices that pin a log; see `logged`."""

ListRefusal: TypeAlias = ListFault | Literal["expired", "rolled_back", "clock_not_trusted"] | LogRefusal
"""unsigned, unreadable, or signed by no pinned key (wrong_signature); its time is over (expired); older than
one that was seen, or another of the same number (rolled_back); no clock to judge it by, or it lives for over
a year and a day, so that this clock or the signer's is wrong (clock_not_trusted); or a LogRefusal."""

_SKEW_S: Final = 86_400
"""The seconds that a device's clock may be behind a list that lives for a whole year."""


def pinned(survey_key: str | Iterable[str] | None) -> tuple[bytes, ...]:
    """Return public keys from their texts, 32 bytes each; none for None.

    Raises:
        ClientError: One is no key, or an empty collection was given: it would refuse every list.
    """
    if survey_key is None:
        return ()
    try:
        keys = tuple(map(public_key, [survey_key] if isinstance(survey_key, str) else survey_key))
    except ParameterError as error:
        raise ClientError(str(error)) from None
    if not keys:
        raise ClientError("survey_key must be a key, several, or None for no check, got none of them")
    return keys


def opened(data: bytes, keys: Collection[bytes]) -> Opened:
    """Return the list that `data` holds, signed by one of the keys.

    Raises:
        ListRefusedError: It is not.
    """
    try:
        return open_signed(data, keys)
    except ListError as error:
        raise ListRefusedError(error.reason, str(error)) from None


def unverified(data: bytes) -> tuple[bytes, ...]:
    """Return the canonical bytes of a plain or signed list, whoever made it.

    Raises:
        ListRefusedError: It is no list.
    """
    try:
        return read_unverified(data)[1]
    except ListError as error:
        raise ListRefusedError(error.reason, "collector's list of surveys cannot be read") from None


def newest(seen: Iterable[StoredList], keys: Collection[bytes]) -> StoredList | None:
    """Return the newest list seen of these keys; lists of a key that is no longer pinned do not count."""
    own = (each for each in seen if each.key in keys)
    return max(own, key=lambda each: (each.sequence, each.judged_s), default=None)


def list_refusal(
    found: Opened, known: StoredList | None, *, now_s: float, seen_s: float
) -> ListRefusal | None:
    """Return why a list with a good signature is refused, None if it is not.

    Args:
        found: The list.
        known: The newest one seen of the pinned keys.
        now_s: The trusted clock, epoch seconds.
        seen_s: A moment that is over for sure: the start of the latest round answered, epoch seconds.
    """
    listed = found.listed
    # Its year is counted from now too: a date of issue that is ahead of every clock must lengthen no life.
    ahead = listed.expires_s - now_s > MAX_LIFE_S + _SKEW_S
    if known is not None:
        if listed.sequence < known.sequence:
            return "rolled_back"
        if listed.sequence == known.sequence:
            if found.digest != known.digest:
                return "rolled_back"
            now_s = max(now_s, known.judged_s, seen_s)
    if ahead:
        return "clock_not_trusted"
    return "expired" if not now_s < listed.expires_s else None
