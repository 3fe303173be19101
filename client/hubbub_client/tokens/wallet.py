"""The wallet of one-time tokens: the report of each, its signature, and the requests to the issuer.

It is a file of its own beside the ledger. No budget is in it: who loses it loses the right to send the
reports that wait, and nothing else. A nonce is on disk before the report that takes its id from it.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from hubbub.tokens import NONCE_BYTES, Token, challenge_digest, report_id_of
from hubbub_client.errors import ClientError

_APPLICATION_ID: Final = 0x48755457  # "HuTW"
_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS nonce (
    digest BLOB NOT NULL, round INTEGER NOT NULL, nonce BLOB NOT NULL, id BLOB NOT NULL UNIQUE,
    key_id BLOB, authenticator BLOB, waits INTEGER NOT NULL DEFAULT 0, PRIMARY KEY (digest, round)
) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS asked (
    period INTEGER NOT NULL, place INTEGER NOT NULL, request BLOB NOT NULL, nonce BLOB NOT NULL,
    challenge BLOB NOT NULL, inverse BLOB NOT NULL, PRIMARY KEY (period, place)
) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS period (number INTEGER PRIMARY KEY) STRICT;
CREATE TABLE IF NOT EXISTS issuer (name TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;
"""


@contextmanager
def _named_errors() -> Iterator[None]:
    """Say what fails below as the client does."""
    try:
        yield
    except (OSError, sqlite3.Error) as error:
        raise ClientError(f"token wallet cannot be used: {type(error).__name__}") from None


@dataclass(frozen=True, slots=True)
class PendingToken:
    """One token that was asked for.

    Attributes:
        request: The TokenRequest as it was sent.
        nonce: The nonce of the token, 32 bytes.
        challenge_digest: What it is good for, 32 bytes.
        inverse: What takes the blinding off.
    """

    request: bytes
    nonce: bytes
    challenge_digest: bytes
    inverse: int


class Wallet:
    """One open wallet file.

    Args:
        path: The file; made, readable by its owner alone, if it does not exist.
        issuer: The issuer's name, as its tokens' challenges have it.

    Raises:
        ClientError: If the file cannot be used, is another database, or of another issuer: the ids of reports
            that wait are bound to its name. So does every method where the file fails.
    """

    def __init__(self, path: str | os.PathLike[str], issuer: str) -> None:
        self._issuer = issuer
        self._lock = threading.Lock()
        place = os.fspath(path)
        with _named_errors():
            os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
            self._db = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        try:
            with _named_errors():
                (mark,) = self._db.execute("PRAGMA application_id").fetchone()
                (tables,) = self._db.execute("SELECT count(*) FROM sqlite_schema").fetchone()
                if mark != _APPLICATION_ID and tables:
                    raise ClientError(f"token wallet must be one, got another database: {place!r}")
                self._db.execute("PRAGMA journal_mode = WAL")
                self._db.execute("PRAGMA synchronous = FULL")
                self._db.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
                self._db.executescript(_SCHEMA)
                self._db.execute(
                    "INSERT INTO issuer SELECT ? WHERE NOT EXISTS (SELECT 1 FROM issuer)", (issuer,)
                )
                (name,) = self._db.execute("SELECT name FROM issuer").fetchone()
            if name != issuer:
                raise ClientError(f"token wallet must be of issuer {issuer!r}, got one of {name!r}")
        except BaseException:
            self._db.close()
            raise

    @contextmanager
    def _held(self) -> Iterator[sqlite3.Connection]:
        """Hold the file for one change, which is made whole or not at all."""
        with _named_errors(), self._lock, self._db:
            self._db.execute("BEGIN IMMEDIATE")
            yield self._db

    def report_id(self, digest: bytes, round_number: int) -> bytes:
        """Return the id of the report of a survey and round, 16 bytes; its nonce is on disk from then on."""
        return self._row(digest, round_number)[1]

    def _row(self, digest: bytes, round_number: int) -> tuple[bytes, bytes]:
        """Return nonce and report id of a survey and round."""
        bound = challenge_digest(self._issuer, digest, round_number)
        nonce = os.urandom(NONCE_BYTES)
        with self._held() as db:
            db.execute(
                "INSERT INTO nonce (digest, round, nonce, id) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
                (digest, round_number, nonce, report_id_of(nonce, bound)),
            )
            found: tuple[bytes, bytes] = db.execute(
                "SELECT nonce, id FROM nonce WHERE digest = ? AND round = ?", (digest, round_number)
            ).fetchone()
        return found

    def keep(self, rounds: Iterable[tuple[bytes, int]], waiting: Iterable[bytes]) -> None:
        """Drop what is neither for a coming round nor for a report that waits.

        The caller holds the ledger meanwhile: a report that is being answered would be dropped otherwise.

        Args:
            rounds: (digest, round) pairs that will soon be answered.
            waiting: Ids of the reports that wait to be sent: their tokens are asked for first.
        """
        coming, ids = set(rounds), set(waiting)
        with self._held() as db:
            rows = db.execute("SELECT digest, round, id FROM nonce").fetchall()
            gone = [row[:2] for row in rows if row[:2] not in coming and row[2] not in ids]
            db.executemany("DELETE FROM nonce WHERE digest = ? AND round = ?", gone)
            db.executemany("UPDATE nonce SET waits = 1 WHERE id = ?", [(one,) for one in ids])

    def unsigned(self, rounds: Iterable[tuple[bytes, int]], limit: int) -> list[tuple[bytes, bytes]]:
        """Return nonce and challenge digest of each token to ask for: of reports that wait, then of `rounds`.

        Args:
            rounds: (digest, round) pairs that will soon be answered.
            limit: Most of them.
        """
        with self._held() as db:
            waiting = db.execute(
                "SELECT digest, round FROM nonce WHERE authenticator IS NULL "
                "ORDER BY waits DESC, round LIMIT ?",
                (limit,),
            ).fetchall()
            signed = set(
                db.execute("SELECT digest, round FROM nonce WHERE authenticator IS NOT NULL").fetchall()
            )
        chosen = list(dict.fromkeys([*waiting, *rounds]))
        chosen = [pair for pair in chosen if pair not in signed][:limit]
        return [
            (self._row(digest, number)[0], challenge_digest(self._issuer, digest, number))
            for digest, number in chosen
        ]

    def asked(self, period: int) -> list[PendingToken]:
        """Return what was asked for in a period, in order; nothing where nothing was, or it came."""
        with self._held() as db:
            rows = db.execute(
                "SELECT request, nonce, challenge, inverse FROM asked WHERE period = ? ORDER BY place",
                (period,),
            ).fetchall()
        return [
            PendingToken(request, nonce, bound, int.from_bytes(inverse, "big"))
            for request, nonce, bound, inverse in rows
        ]

    def is_done(self, period: int) -> bool:
        """Return whether the tokens of a period came."""
        with self._held() as db:
            return bool(db.execute("SELECT 1 FROM period WHERE number = ?", (period,)).fetchone())

    def ask(self, period: int, asked: Sequence[PendingToken]) -> None:
        """Keep what is about to be asked for; what was asked for in another period is given up."""
        rows = [
            (period, place, one.request, one.nonce, one.challenge_digest, one.inverse.to_bytes(256, "big"))
            for place, one in enumerate(asked)
        ]
        with self._held() as db:
            db.execute("DELETE FROM asked")
            db.executemany("INSERT INTO asked VALUES (?, ?, ?, ?, ?, ?)", rows)

    def take(self, period: int, tokens: Sequence[Token]) -> None:
        """Keep the tokens of a period that are for a report, and throw the others away."""
        with self._held() as db:
            db.executemany(
                "UPDATE nonce SET key_id = ?, authenticator = ? WHERE nonce = ? AND authenticator IS NULL",
                [(token.key_id, token.authenticator, token.nonce) for token in tokens],
            )
            db.execute("DELETE FROM asked")
            # The last one alone: a clock that was ahead once must not end the tokens until then.
            db.execute("DELETE FROM period")
            db.execute("INSERT INTO period VALUES (?)", (period,))

    def token_of(self, report_id: bytes) -> bytes | None:
        """Return the token of a report, None while there is none."""
        with self._held() as db:
            row = db.execute(
                "SELECT digest, round, nonce, key_id, authenticator FROM nonce "
                "WHERE id = ? AND authenticator IS NOT NULL",
                (report_id,),
            ).fetchone()
        if row is None:
            return None
        digest, number, nonce, key_id, authenticator = row
        return Token(nonce, challenge_digest(self._issuer, digest, number), key_id, authenticator).encoded

    def spent(self, report_ids: Iterable[bytes]) -> None:
        """Drop the tokens of reports that are settled."""
        with self._held() as db:
            db.executemany("DELETE FROM nonce WHERE id = ?", [(report_id,) for report_id in report_ids])

    def forget(self) -> None:
        """Erase every nonce and token; the period stays asked for."""
        with self._held() as db:
            db.execute("DELETE FROM nonce")
            db.execute("DELETE FROM asked")

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._db.close()
