"""Lists of surveys that a device takes only out of a log that witnesses have seen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hubbub.errors import ListError, WireError
from hubbub.wire import unpack
from hubbub_client.errors import ListRefusedError

if TYPE_CHECKING:
    from hubbub.transparency import LogPolicy

LOGGED_PATH: Final = "/v2/surveys"
"""The path of a collector's list with a proof: the array ["hubbub-logged-list", list, proof]."""

MAX_AGE_S: Final = 30 * 86_400
"""Seconds after which what witnesses saw is no news: for so long a newer log can be withheld."""

_MAGIC: Final = "hubbub-logged-list"


def out_of_log(data: bytes, policy: LogPolicy, *, now_s: float | None, size: int = 0) -> tuple[bytes, int]:
    """Return a signed list that came with the proof that it is in a log, and how long that was.

    Nobody has looked at the list's signature.

    Args:
        data: Bytes that anybody may have made.
        policy: The log and the witnesses that the host pins.
        now_s: Clock time, epoch seconds; None if it is not trusted.
        size: The most entries that the log was ever seen to have.

    Raises:
        ListRefusedError: Its `reason`: "unlogged", it is not in the log; "unwitnessed", too few witnesses saw
            that; "stale_checkpoint", too long ago; "log_rolled_back", it was longer before.
    """
    from hubbub.transparency import NotLoggedError, list_entry  # noqa: PLC0415 - hosts that pin no log need none

    try:
        found = unpack(data, "logged list")
        if not isinstance(found, list) or len(found) != 3 or found[0] != _MAGIC:
            raise ListRefusedError("unlogged", f"list must be an array of three that begins with {_MAGIC!r}")
        _, listed, proof = found
        if not isinstance(listed, bytes) or not isinstance(proof, bytes):
            raise ListRefusedError("unlogged", "list must come as bytes, and so must its proof")
        witnessed = policy.proven(list_entry(listed).data, proof)
    except NotLoggedError as error:
        raise ListRefusedError(error.reason, str(error)) from None
    except ListError as error:
        raise ListRefusedError(error.reason, str(error)) from None
    except WireError as error:
        raise ListRefusedError("unlogged", str(error)) from None
    newest = sorted(witnessed.seen.values(), reverse=True)[: policy.quorum]
    if now_s is not None and newest and newest[-1] < now_s - MAX_AGE_S:
        raise ListRefusedError(
            "stale_checkpoint", f"log must be seen by {policy.quorum} witnesses this month"
        )
    if witnessed.checkpoint.size < size:
        raise ListRefusedError("log_rolled_back", f"log must have {size} entries, as it was seen to have")
    return listed, witnessed.checkpoint.size
