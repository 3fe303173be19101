"""The log's key at work: what was appended is signed, shown to witnesses, and published once enough saw it.

Nothing waits for it: releases are archived and shown whether witnesses answer or not. A checkpoint of one
size has one text and one signature, so whoever is killed anywhere here signs the same again.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from hubbub.transparency import Checkpoint, LogPolicy, Note, NoteKey, NotLoggedError, number_of, path_text
from hubbub_aggregator import AggregatorError
from hubbub_aggregator.stores import TRANSPARENCY_FILE, TransparencyLog
from hubbub_client import TransportError
from hubbub_client.upload import HttpTransport, Transport
from hubbub_deploy.errors import DeployError
from hubbub_deploy.files import private_files

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

RENEWAL_S: Final = 86_400
"""Seconds after which witnesses see the same checkpoint again: devices take none that is a month old."""

_WITNESS_S: Final = 10.0
_AGAIN_S: Final = 10.0
_ADD: Final = "/add-checkpoint"
_LOG: Final = logging.getLogger("hubbub.log")


@dataclass(frozen=True, slots=True)
class LogSettings:
    """The key of a log, and who watches it.

    Attributes:
        key: The log's key; its name is the log's origin.
        private: The same key's secret half.
        witnesses: The address of each witness, by its key.
        quorum: How many witnesses must have seen a checkpoint before it is published.
    """

    key: NoteKey
    private: Ed25519PrivateKey
    witnesses: dict[NoteKey, str]
    quorum: int


class LogKeeper:
    """The publisher of one log's checkpoints; one thread at a time.

    Args:
        log: The log.
        settings: Its key, and who watches it.
        clock: Seconds since 1970.
        connect: Return a way to a witness, by its address.

    Raises:
        NotLoggedError: If the witnesses are fewer than the quorum, or not witnesses.
    """

    def __init__(
        self,
        log: TransparencyLog,
        settings: LogSettings,
        *,
        clock: Callable[[], float] = time.time,
        connect: Callable[[str], Transport] | None = None,
    ) -> None:
        self._log, self._settings, self._clock = log, settings, clock
        self._policy = LogPolicy(settings.key, tuple(settings.witnesses), settings.quorum)
        connect = connect or (lambda url: HttpTransport(url, timeout_s=_WITNESS_S, plain_http="anywhere"))
        self._ways = {key: connect(url) for key, url in settings.witnesses.items()}
        # The size that each witness saw last, as far as is known; it says so itself where that is wrong.
        self._sizes = dict.fromkeys(settings.witnesses, 0)
        self._said: dict[str, str] = {}
        self._tried, self._again_s = -1, 0.0

    def look(self) -> None:
        """Publish the log as it is now, if that is new, a day old, or was not seen by every witness."""
        try:
            self._look()
        except AggregatorError as error:
            self._say("", str(error))

    def _look(self) -> None:
        size, now_s = self._log.size, self._clock()
        if size == self._tried and now_s < self._again_s:
            return
        self._tried, self._again_s = size, now_s + _AGAIN_S
        checkpoint = self._log.checkpoint(self._settings.key.name)
        text, private = checkpoint.text, self._settings.private
        published = self._log.published()
        note = None if published is None else Note.parse(published.encode())
        if note is not None and note.text == text:
            seen = [key.signed_at(note) for key in self._ways]
            if all(at_s is not None and at_s > now_s - RENEWAL_S for at_s in seen):
                return
        signed = f"{text}\n{self._settings.key.sign(text, private)}"
        whole = signed + "".join(self._cosigned(key, checkpoint, signed) for key in self._ways)
        try:
            self._policy.opened(whole.encode())
        except NotLoggedError as error:
            self._say("", str(error))
            return
        self._say("", "")
        self._log.publish(whole)

    def close(self) -> None:
        """Close the connections to witnesses."""
        for way in self._ways.values():
            way.close()

    def _cosigned(self, key: NoteKey, checkpoint: Checkpoint, signed: str) -> str:
        """Return a witness's line beneath a checkpoint; "" if it gives none."""
        why = "answered in no way that was foreseen"
        for _ in range(2):  # the second time from the size that it names
            old = self._sizes[key]
            grew = path_text(self._log.growth(old, checkpoint.size))
            try:
                answer = self._ways[key].post(_ADD, f"old {old}\n{grew}\n{signed}".encode())
            except TransportError as error:
                why = str(error)
                break
            text = answer.body.decode("utf-8", "replace")
            if answer.status == 200:
                note = Note.parse((signed + text).encode())
                if note is not None and key.signed_at(note) is not None:
                    self._sizes[key] = checkpoint.size
                    self._say(key.name, "")
                    return text
                break
            known = number_of(text.strip()) if answer.status == 409 else None
            if known is None or known == old:
                why = f"refused it with {answer.status}: this is not the log that it saw"
                break
            if known > checkpoint.size:
                why = f"has seen {known:,} entries, and here are {checkpoint.size:,}: restore the newest copy"
                break
            self._sizes[key] = known
        self._say(key.name, why)
        return ""

    def _say(self, name: str, why: str) -> None:
        """Log what is wrong with a witness, "" for nothing, when it changes."""
        if self._said.get(name, "") != why:
            self._said[name] = why
            if why:
                _LOG.warning("%s", f"witness {name} {why}" if name else f"no checkpoint is published: {why}")


def keeper_of(log: TransparencyLog | None, settings: LogSettings | None) -> LogKeeper | None:
    """Return the keeper of a log; None where there is none."""
    return None if log is None or settings is None else LogKeeper(log, settings)


@contextlib.contextmanager
def opened_log(folder: Path, settings: LogSettings | None) -> Iterator[TransparencyLog | None]:
    """Give the log of a folder, both made if absent; None where there are no settings for one.

    Raises:
        DeployError: If it cannot be used.
    """
    if settings is None:
        yield None
        return
    try:
        with private_files():
            folder.mkdir(parents=True, exist_ok=True)
            log = TransparencyLog(folder / TRANSPARENCY_FILE)
    except OSError as error:
        raise DeployError(f"{folder}: must be a folder to write in, got {error.strerror!r}") from error
    except AggregatorError as error:
        raise DeployError(str(error)) from error
    with contextlib.closing(log):
        yield log
