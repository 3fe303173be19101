"""A counter of the host's that nothing takes back: a ledger set back on its own device is refused."""

import shutil
from pathlib import Path

import pytest
from devices import DAY_S, HEALTH_SURVEY, Clock
from surveys import START_S

from hubbub_client import Agent, LedgerError, LedgerForeignError


class Keychain:
    """The host's storage; it can be made to fail before or after it has counted."""

    def __init__(self, number: object = 0) -> None:
        self.number = number
        self.fails: str = "never"

    def read(self) -> object:
        if self.fails == "read":
            raise OSError("locked with 'secret'")
        return self.number

    def advance(self, to: int) -> None:
        if self.fails == "before":
            raise OSError("locked")
        if self.fails != "silently":
            self.number = max(self.number, to)
        if self.fails == "after":
            raise OSError("locked")


@pytest.fixture
def clock() -> Clock:
    return Clock(START_S)


def copied(tmp_path: Path) -> Path:
    kept = tmp_path / "kept"
    kept.mkdir()
    for name in ("ledger.db", "ledger.db.mark"):
        shutil.copy(tmp_path / name, kept / name)
    return kept


def restore(tmp_path: Path, kept: Path) -> None:
    for file in kept.iterdir():
        shutil.copy(file, tmp_path / file.name)


def enrolled(open_agent, keychain: Keychain) -> Agent:
    agent = open_agent(counter=keychain)
    assert agent.enrol(HEALTH_SURVEY).accepted
    return agent


def test_every_change_of_the_account_is_counted_and_nothing_else(open_agent, clock) -> None:
    keychain = Keychain()
    agent = open_agent(counter=keychain)
    assert keychain.number == 1  # so that a reinstall is noticed
    agent.enrol(HEALTH_SURVEY)
    agent.answer()
    assert keychain.number == 3
    agent.upload()
    agent.pause()
    agent.resume()
    agent.close()
    agent = open_agent(counter=keychain)
    assert keychain.number == 3
    agent.forget()
    assert keychain.number == 4


@pytest.mark.parametrize("verb", ["answer", "enrol", "forget"])
def test_an_older_copy_on_the_same_device_is_refused(open_agent, tmp_path, verb) -> None:
    keychain = Keychain()
    agent = enrolled(open_agent, keychain) if verb != "enrol" else open_agent(counter=keychain)
    agent.close()
    kept = copied(tmp_path)
    agent = open_agent(counter=keychain)
    assert agent.enrol(HEALTH_SURVEY) if verb == "enrol" else getattr(agent, verb)() != ()
    agent.close()
    restore(tmp_path, kept)
    with pytest.raises(LedgerForeignError, match="older copy"):
        open_agent(counter=keychain)
    with pytest.raises(LedgerForeignError, match="got none"):
        open_agent()


def test_a_reinstall_is_refused_where_the_counter_outlives_it(open_agent, tmp_path) -> None:
    keychain = Keychain()
    enrolled(open_agent, keychain).close()
    for file in tmp_path.iterdir():
        file.unlink()
    with pytest.raises(LedgerForeignError, match="there was another"):
        open_agent(counter=keychain)


def test_a_counter_that_was_lost_opens_nothing(open_agent) -> None:
    agent = enrolled(open_agent, Keychain())
    agent.answer()
    agent.close()
    with pytest.raises(LedgerForeignError, match="another one"):
        open_agent(counter=Keychain())


@pytest.mark.parametrize("fails", ["before", "silently", "after"])
def test_what_was_not_counted_is_not_sent_and_is_there_when_it_is(open_agent, collector, fails) -> None:
    keychain = Keychain()
    agent = enrolled(open_agent, keychain)
    keychain.fails = fails
    with pytest.raises(LedgerError, match="counter"):
        agent.answer()
    with pytest.raises(LedgerError):
        agent.upload()
    assert collector.bodies == []
    agent.close()
    if fails != "after":
        with pytest.raises(LedgerError, match="counter"):
            open_agent(counter=keychain)
    keychain.fails = "never"
    agent = open_agent(counter=keychain)
    assert agent.answer() == ()  # it was answered
    agent.upload()
    assert len(collector.received) == 1
    assert keychain.number == 3


def test_an_answer_that_was_not_counted_was_seen_by_nobody(open_agent, collector, tmp_path) -> None:
    keychain = Keychain()
    agent = enrolled(open_agent, keychain)
    agent.close()
    kept = copied(tmp_path)
    agent = open_agent(counter=keychain)
    keychain.fails = "before"
    with pytest.raises(LedgerError):
        agent.answer()
    agent.close()
    keychain.fails = "never"
    restore(tmp_path, kept)
    agent = open_agent(counter=keychain)
    assert len(agent.answer()) == 1
    agent.upload()
    assert len(collector.received) == 1


@pytest.mark.parametrize("number", [-1, 2.0, True, None, "3"])
def test_a_counter_that_says_no_number_opens_nothing(open_agent, number) -> None:
    with pytest.raises(LedgerError, match="integer"):
        open_agent(counter=Keychain(number))


def test_an_error_of_the_counter_is_not_quoted(open_agent) -> None:
    keychain = Keychain()
    keychain.fails = "read"
    with pytest.raises(LedgerError) as caught:
        open_agent(counter=keychain)
    assert "secret" not in str(caught.value) and caught.value.__cause__ is None


def test_a_ledger_without_a_counter_is_bound_by_the_first_that_is_given(open_agent, clock) -> None:
    agent = open_agent()
    agent.enrol(HEALTH_SURVEY)
    agent.answer()
    agent.close()
    keychain = Keychain()
    open_agent(counter=keychain).close()
    clock.now_s += DAY_S
    agent = open_agent(counter=keychain)
    assert len(agent.answer()) == 1 and keychain.number == 2
