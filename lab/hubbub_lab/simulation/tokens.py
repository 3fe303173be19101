"""One-time tokens for simulated devices, from a real issuer: what honest devices and liars get of them.

An honest device asks for the round at hand and those to come. A liar who holds a device's credential asks for
as many tokens of the round at hand as the issuer gives in a period: what they are for, the issuer cannot see.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import cycle, islice
from typing import Final, TypeAlias

import numpy as np

from hubbub.errors import WireError
from hubbub.numeric import SYSTEM
from hubbub.tokens import (
    MODULUS_BYTES,
    NONCE_BYTES,
    Token,
    blind,
    challenge_digest,
    encode_request,
    finalize,
    token_input,
)
from hubbub.wire import ID_BYTES
from hubbub_client import TokenIssuer
from hubbub_client.tokens import REQUEST_PATH, REQUEST_TYPE
from hubbub_client.upload import HttpTransport
from hubbub_lab.errors import LabError
from hubbub_lab.simulation.device_simulator import Column

_THREADS: Final = 8

Round: TypeAlias = tuple[bytes, int]
"""The digest of a survey, and a round of it."""


class TokenPool:
    """The tokens of simulated devices.

    Args:
        issuer: The issuer, as the first device knows it.
        credentials: One for each device, in the order of the devices; those beyond are the liars'.
        devices: How many devices are honest.

    Raises:
        LabError: If there are fewer credentials than devices.
    """

    def __init__(self, issuer: TokenIssuer, credentials: Sequence[str], devices: int) -> None:
        if len(credentials) < devices:
            raise LabError(
                f"credentials must be at least one for each of {devices:,} devices, got {len(credentials):,}"
            )
        self._issuer, self._credentials, self._devices = issuer, credentials, devices
        self._tokens: dict[tuple[int, Round], list[Token]] = {}
        self._lock = threading.Lock()

    def admitted(self, columns: Sequence[Column]) -> list[Column]:
        """Return the reports of honest devices that get a token for them, with their tokens."""
        rounds = [(column.survey.digest, column.round) for column in columns]
        # This round of every survey, then the next ones.
        wanted = [
            (digest, number + ahead) for ahead in range(self._issuer.quantity) for digest, number in rounds
        ]
        holders = np.unique(np.concatenate([column.devices for column in columns])).tolist()
        self._fetch(holders, wanted[: self._issuer.quantity], rounds)
        return [
            _with_tokens(column, [self._spend(holder, bound) for holder in column.devices.tolist()])
            for column, bound in zip(columns, rounds, strict=True)
        ]

    def forged(self, columns: Sequence[Column]) -> list[Column]:
        """Return as many of the liars' reports as the credentials in their hands get tokens for."""
        rounds = [(column.survey.digest, column.round) for column in columns]
        stolen = range(self._devices, len(self._credentials))
        self._fetch(stolen, list(islice(cycle(rounds), self._issuer.quantity)), rounds)
        found = []
        for column, bound in zip(columns, rounds, strict=True):
            tokens = [token for holder in stolen for token in self._tokens.pop((holder, bound), [])]
            liars = len(column.devices)
            found.append(_with_tokens(column, [*tokens, *([None] * liars)][:liars]))
        return found

    def _spend(self, holder: int, bound: Round) -> Token | None:
        known = self._tokens.get((holder, bound))
        return known.pop() if known else None

    def _fetch(self, holders: Iterable[int], wanted: Sequence[Round], rounds: Sequence[Round]) -> None:
        """Ask for the tokens of those who have none for a round at hand; a refusal leaves them without."""
        asking = [
            holder for holder in holders if not all(self._tokens.get((holder, bound)) for bound in rounds)
        ]
        with ThreadPoolExecutor(_THREADS) as pool:
            for _ in pool.map(lambda holder: self._ask(holder, wanted), asking):
                pass

    def _ask(self, holder: int, wanted: Sequence[Round]) -> None:
        key, name = self._issuer.public_key, self._issuer.name
        asked = []
        for bound in islice([*wanted, *([None] * self._issuer.quantity)], self._issuer.quantity):
            challenge = os.urandom(32) if bound is None else challenge_digest(name, *bound)
            nonce = os.urandom(NONCE_BYTES)
            asked.append((bound, nonce, challenge, blind(key, token_input(nonce, challenge, key.id), SYSTEM)))
        http = HttpTransport(
            self._issuer.url,
            bearer=self._credentials[holder],
            content_type=REQUEST_TYPE,
            plain_http=self._issuer.plain_http,
        )
        try:
            body = b"".join(encode_request(key, hidden.message) for _, _, _, hidden in asked)
            response = http.post(REQUEST_PATH, body)
        finally:
            http.close()
        if response.status == 429:
            return
        if response.status != 200 or len(response.body) != MODULUS_BYTES * len(asked):
            raise LabError(
                f"issuer must answer with {len(asked)} signatures, got status {response.status} and "
                f"{len(response.body)} bytes"
            )
        for place, (bound, nonce, challenge, hidden) in enumerate(asked):
            signature = response.body[MODULUS_BYTES * place : MODULUS_BYTES * (place + 1)]
            message = token_input(nonce, challenge, key.id)
            try:
                token = Token(nonce, challenge, key.id, finalize(key, message, signature, hidden.inverse))
            except WireError as error:
                raise LabError(f"issuer's answer is refused: {error}") from None
            if bound is not None:
                with self._lock:
                    self._tokens.setdefault((holder, bound), []).append(token)


def _with_tokens(column: Column, given: Sequence[Token | None]) -> Column:
    """Return the reports that have a token, which says their ids."""
    kept = [place for place, token in enumerate(given) if token is not None]
    tokens = [token for token in given if token is not None]
    ids = np.frombuffer(b"".join(token.report_id for token in tokens), dtype=np.uint8)
    return replace(
        column,
        devices=column.devices[kept],
        ids=ids.reshape(-1, ID_BYTES),
        symbols=column.symbols[kept],
        tokens=tuple(token.encoded for token in tokens),
    )
