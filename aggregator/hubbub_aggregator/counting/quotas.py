"""The part of a group of new reports that quotas leave: the survey's, and each issuer's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hubbub.wire import ID_BYTES
from hubbub_aggregator.counting.dedup import Fresh, IdSet, keys_of

_ID: Final = np.dtype((np.void, ID_BYTES))


def within_quota(room: int | None, seen: IdSet, ids: Sequence[bytes], fresh: Fresh) -> tuple[Fresh, int]:
    """Return the part of `fresh` that a quota leaves, and the number of reports that it refuses.

    A report that is refused is not remembered: its copies are refused too, as they would be one by one. So
    what comes after the last one accepted is a duplicate only of what was accepted.

    Args:
        room: How many more reports count; None for any number.
        seen: The round's ids before this group.
        ids: All ids of the group, in their order.
        fresh: What `seen` said of them.
    """
    if room is None:
        return fresh, 0
    n = sum([len(column) for column in ids]) // ID_BYTES
    if (n if fresh.mask is None else np.count_nonzero(fresh.mask)) <= room:
        return fresh, 0
    column = b"".join(ids)
    # Cut the group at the first new report that finds no room: before it all is as `fresh` said, behind it no
    # report counts, and only copies of accepted ones are duplicates.
    first_over = room if fresh.mask is None else int(np.flatnonzero(fresh.mask)[room])
    taken, rest = seen.fresh([column[: first_over * ID_BYTES]]), column[first_over * ID_BYTES :]
    repeated = seen.known(rest) | np.isin(keys_of(rest), taken.keys)
    mask = np.zeros(n, dtype=np.bool_)
    mask[:first_over] = True if taken.mask is None else taken.mask
    return taken._replace(mask=mask), n - first_over - int(np.count_nonzero(repeated))


def within_quotas(
    room: int | None,
    rooms: list[tuple[str | None, int | None]],
    seen: IdSet,
    ids: Sequence[bytes],
    places: NDArray[np.intp],
) -> tuple[Fresh, NDArray[np.bool_]]:
    """Return the new ids that quotas leave, and which reports they refuse, shape (n,).

    Args:
        room: How many more reports of the round count; None for any number.
        rooms: By place: an issuer, and how many more of its reports count.
        seen: The round's ids before this group.
        ids: All ids of the group, in their order.
        places: The place of each report's voucher, shape (n,).
    """
    fresh = seen.fresh(ids)
    n = len(places)
    new = places if fresh.mask is None else places[fresh.mask]
    # Nearly every group finds room whole, which sums by issuer tell; only another one is judged one by one.
    by_place = np.bincount(new, minlength=len(rooms))
    wanted = dict.fromkeys((issuer for issuer, _ in rooms), 0)
    for (issuer, _), number in zip(rooms, by_place.tolist(), strict=True):
        wanted[issuer] += number
    if (room is None or len(new) <= room) and all(
        most is None or wanted[issuer] <= most for issuer, most in rooms
    ):
        return fresh, np.zeros(n, dtype=np.bool_)
    column = b"".join(ids)
    accepted, over = _one_by_one(seen.known(column), keys_of(column), places, rooms, room)
    taken = seen.fresh([np.frombuffer(column, dtype=_ID)[accepted].tobytes()])
    return taken._replace(mask=accepted), over


def _one_by_one(
    known: NDArray[np.bool_],
    keys: NDArray[np.uint64],
    places: NDArray[np.intp],
    rooms: Sequence[tuple[str | None, int | None]],
    room: int | None,
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return which reports count and which are over a quota, judged one after another; the rest are copies.

    A report that is refused is not remembered: its copies are refused too.

    Args:
        known: Whether its id was accepted before this group, shape (n,).
        keys: The ids' keys, shape (n,).
        places: The place of each report's voucher in `rooms`, shape (n,).
        rooms: By place: an issuer, None where nobody vouched, and how many more of its reports count.
        room: How many more reports count whoever vouched; None for any number.
    """
    n = len(keys)
    accepted, over = np.zeros(n, dtype=np.bool_), np.zeros(n, dtype=np.bool_)
    taken: set[int] = set()
    # Two vouchers of one issuer may state two quotas: what one took, the other has not.
    used = dict.fromkeys((issuer for issuer, _ in rooms), 0)
    for at, (is_known, key, place) in enumerate(
        zip(known.tolist(), keys.tolist(), places.tolist(), strict=True)
    ):
        if is_known or key in taken:
            continue
        issuer, most = rooms[place]
        if (most is not None and used[issuer] >= most) or (room is not None and len(taken) >= room):
            over[at] = True
            continue
        accepted[at] = True
        taken.add(key)
        used[issuer] += 1
    return accepted, over
