"""The wallet of tokens: clocks that jump, rounds that pass, other issuers, disks that fail."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from hubbub.tokens import Token
from hubbub_client.errors import ClientError
from hubbub_client.tokens.wallet import Wallet

SURVEY = bytes(range(16))


@pytest.fixture
def wallet(tmp_path: Path) -> Iterator[Wallet]:
    with closing(Wallet(tmp_path / "w", "tokens.example")) as wallet:
        yield wallet


def signed(wallet: Wallet, period: int, *pairs: tuple[bytes, int]) -> None:
    """Let the wallet have a token, of no key, for each pair."""
    asked = wallet.unsigned(pairs, len(pairs))
    wallet.take(period, [Token(nonce, bound, bytes(32), bytes(256)) for nonce, bound in asked])


def test_a_clock_that_was_ahead_once_takes_no_later_tokens_away(wallet: Wallet) -> None:
    signed(wallet, 90_000, (SURVEY, 0))
    assert wallet.is_done(90_000)
    assert not wallet.is_done(20_000)
    signed(wallet, 20_000, (SURVEY, 1))
    assert wallet.is_done(20_000)


def test_rounds_that_passed_leave_and_take_nobodys_place(wallet: Wallet) -> None:
    waits = wallet.report_id(SURVEY, 3)
    for number in range(3):
        wallet.report_id(SURVEY, number)
    wallet.keep([(SURVEY, 7), (SURVEY, 8)], [waits])
    asked = wallet.unsigned([(SURVEY, 7), (SURVEY, 8)], 2)
    assert len(asked) == 2
    again = wallet.unsigned([], 9)
    # The report that waits and one coming round had the two places; the rounds that passed are gone.
    assert len(again) == 2
    signed(wallet, 1, (SURVEY, 7))
    wallet.keep([(SURVEY, 8)], [waits])
    assert wallet.token_of(waits) is not None
    assert len(wallet.unsigned([], 9)) == 0


def test_a_wallet_is_of_one_issuer(tmp_path: Path) -> None:
    Wallet(tmp_path / "w", "tokens.example").close()
    Wallet(tmp_path / "w", "tokens.example").close()
    with pytest.raises(ClientError, match=r"of issuer 'another.example', got one of 'tokens.example'"):
        Wallet(tmp_path / "w", "another.example")


def test_a_wallet_that_fails_says_so_as_the_client_does(tmp_path: Path) -> None:
    wallet = Wallet(tmp_path / "w", "tokens.example")
    wallet.close()
    for ask in (
        lambda: wallet.report_id(SURVEY, 0),
        lambda: wallet.unsigned([], 1),
        lambda: wallet.asked(0),
        lambda: wallet.is_done(0),
        lambda: wallet.ask(0, []),
        lambda: wallet.take(0, []),
        lambda: wallet.token_of(bytes(16)),
        lambda: wallet.spent([bytes(16)]),
        lambda: wallet.keep([], []),
        wallet.forget,
    ):
        with pytest.raises(ClientError, match="token wallet cannot be used: ProgrammingError"):
            ask()
    (tmp_path / "other").write_text("no database, but long enough to be read as one" * 20)
    with pytest.raises(ClientError, match="token wallet cannot be used: DatabaseError"):
        Wallet(tmp_path / "other", "tokens.example")
