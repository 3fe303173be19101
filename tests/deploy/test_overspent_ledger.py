"""Ledgers of before defaults were told apart: stated as they are, never corrupt, and they grant nothing.

Both were written with a budget of 4 by the version that merged scores of different defaults, all answers 1.
overspent: seven answers of epsilon 1, defaults in turn, 2.8 by its account; two reservations of .7 are open.
overreserved: two answers of 1.2 and 1; open are a score of .5, four rounds of a mood of .2 each (one was
answered), a score of .5 and one of 1, enrolled in this order.
"""

from __future__ import annotations

import json
import os
import re
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import agent_harness
import pytest
from devices import DAY_S, Clock, Collector, opener
from missing_scores import X, score
from surveys import START_S

from hubbub.filter import BayesianFilter
from hubbub_client import Agent
from hubbub_client.agent.answerer import Answerer
from hubbub_client.owner_page.html import document
from hubbub_deploy.cli import main

GOLDEN = Path(__file__).parents[1] / "golden"


@pytest.fixture
def clock() -> Clock:
    return Clock(START_S + 20)


@pytest.fixture
def collector() -> Collector:
    return Collector()


@pytest.fixture
def open_ledger(tmp_path: Path, clock: Clock, collector: Collector):
    with opener(tmp_path, clock, collector) as make:

        def opened(name: str | None = None) -> Agent:
            if name is not None:
                (tmp_path / "ledger.db").write_bytes((GOLDEN / f"ledger-3-{name}.db").read_bytes())
            return make(None)

        yield opened


def states(agent: Agent) -> dict[str, str]:
    return {enrolment.survey_id: enrolment.state for enrolment in agent.status().enrolments}


def drawn(agent: Agent) -> int:
    return sum(row.kind == "record" for row in agent._ledger.transcript())


def test_an_overspent_ledger_states_what_was_said_and_grants_nothing(open_ledger, clock) -> None:
    agent = open_ledger("overspent")
    for _ in range(2):
        status = agent.status()
        assert status.budget == 4.0
        # Missing says 1 to all, x = 0 nothing but 1 to the three that fall and x = 1 to the four that rise.
        assert status.loss == pytest.approx(7.0, abs=1e-6)
        assert status.committed == pytest.approx(7.0, abs=1e-6)
        assert states(agent)["late-1"] == states(agent)["late-2"] == "left"
        assert list(states(agent).values()).count("active") == 7
        assert {refused.survey_id for refused in agent.account().refusals} >= {"late-1", "late-2"}
        before = drawn(agent)
        for day in range(2):
            clock.now_s = START_S + day * DAY_S + 30
            agent.answer(), agent.upload()
        assert drawn(agent) == before == 7  # answers that were drawn are sent again, and none is drawn
        tiny = score("tiny", 0.001, falling=False, default=1.0)
        again = next(survey for survey in agent.surveys() if survey.id == "late-1")
        assert agent.enrol(tiny).reason == agent.enrol(again).reason == "over_budget"
        agent.close()
        agent = open_ledger()


def test_an_overspent_ledger_is_shown_to_its_owner_as_it_is(open_ledger, tmp_path, capsys) -> None:
    agent = open_ledger("overspent")
    agent.upload()
    account = agent.account()
    assert (account.budget, account.left) == (4.0, 0.0)
    assert account.loss == pytest.approx(7.0, abs=1e-6) and account.reserved < 1e-6
    assert sum(part.loss for part in account.parts) == pytest.approx(7.0, abs=1e-6)
    page = document(account).decode()
    assert re.search(r'id="spent">(7\.000|7\.001)<', page) and 'id="overspent"' in page
    assert re.search(r"(7\.000|7\.001) of\s+4 stay spent", page)
    agent.close()
    assert main(["agent", "status", "--ledger", str(tmp_path / "ledger.db")]) == 0
    out = capsys.readouterr().out
    assert "7.000 spent" in out and "0.000 left" in out and "more than the budget" in out
    assert main(["agent", "status", "--ledger", str(tmp_path / "ledger.db"), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["loss"] == pytest.approx(7.0, abs=1e-6) and told["left"] == 0.0


def test_what_was_overspent_survives_forget(open_ledger) -> None:
    agent = open_ledger("overspent")
    agent.forget()
    for _ in range(3):
        assert agent.status().loss == pytest.approx(7.0, abs=1e-6)
        assert agent.status().committed == pytest.approx(7.0, abs=1e-6)
        assert agent.account().forgotten == pytest.approx(7.0, abs=1e-6)
        assert agent.enrol(score("tiny", 0.001, falling=False, default=1.0)).reason == "over_budget"
        agent.forget()
        agent.close()
        agent = open_ledger()


def test_reservations_that_no_longer_fit_are_given_up_the_newest_first(open_ledger, clock) -> None:
    """2.2 is answered, .2 of the mood too: .8 of mood and the score of .5 stay, and what came later goes."""
    agent = open_ledger("overreserved")
    for _ in range(2):
        assert states(agent) == {
            "up-0": "active",
            "down-1": "active",
            "score": "active",
            "mood": "active",
            "later": "left",
            "last": "left",
        }
        assert agent.status().committed == pytest.approx(2.2 + 1.0 + 0.5, abs=1e-6)
        assert agent.account().loss + agent.account().reserved == pytest.approx(3.7, abs=1e-6)
        later, last = (
            next(each for each in agent.surveys() if each.id == name) for name in ("later", "last")
        )
        assert agent.enrol(later).reason == agent.enrol(last).reason == "over_budget"
        assert agent.enrol(score("tiny", 0.25, falling=False, default=1.0)).accepted is True
        agent.close()
        # The copy that was written first, so that the second time is like the first.
        agent = open_ledger("overreserved")
    clock.now_s = START_S + DAY_S + 20
    answered = {answer.survey_id for answer in agent.answer()}
    assert answered == {"up-0", "down-1", "score", "mood"}
    assert agent.status().committed <= 4.0


def test_only_what_defaults_explain_is_given_up(monkeypatch, tmp_path) -> None:
    """A bound that comes out higher on another machine takes nothing from a ledger without such scores."""
    with opener(tmp_path, Clock(START_S + 20), Collector()) as make:
        agent = make(2.0)
        agent.register(X)
        for name in ("one", "two"):
            assert agent.enrol(score(name, 0.9, falling=False, default=1.0)).accepted
        agent.close()
        monkeypatch.setattr(BayesianFilter, "headroom", -1.0)
        again = make(None)
        assert set(states(again).values()) == {"active"}
        assert len(again.answer()) == 2


@pytest.mark.parametrize(("name", "first"), [("overspent", 1), ("overreserved", 2)])
def test_a_device_killed_anywhere_while_it_gives_up_overspends_nothing(
    tmp_path: Path, name: str, first: int
) -> None:
    """The process dies before its n-th SQL statement: nothing was drawn, and the next opening gives up.

    Every second statement of an opening, until one ends before it is killed.
    """
    path, now_s = tmp_path / "ledger.db", START_S + DAY_S + 20
    for statement in range(first, 200, 2):
        for left in tmp_path.iterdir():
            left.unlink()
        path.write_bytes((GOLDEN / f"ledger-3-{name}.db").read_bytes())
        rows = _records(path)
        child = os.fork()
        if child == 0:
            try:
                agent_harness.die_before_statement(statement)
                with opener(tmp_path, Clock(now_s), Collector()) as make:
                    make(None)
                os._exit(0)
            finally:
                os._exit(1)
        fate = os.waitpid(child, 0)[1]
        assert fate in {0, 9} and _records(path) == rows
        with opener(tmp_path, Clock(now_s), Collector()) as make:
            agent = make(None)
            committed = agent.status().committed
            assert committed == pytest.approx(7.0 if name == "overspent" else 3.7, abs=1e-6)
            agent.answer()
            assert agent.status().committed <= committed
        if fate == 0:
            break
    assert 20 < statement < 199


def _records(path: Path) -> int:
    with closing(sqlite3.connect(path)) as db:
        return int(db.execute("SELECT count(*) FROM transcript WHERE kind = 1").fetchone()[0])


def test_nothing_is_drawn_where_giving_up_cannot_be_written(
    open_ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ledger is closed, and the next opening does it."""
    drawn_: list[object] = []
    honest: Callable = Answerer._perturb
    monkeypatch.setattr(Answerer, "_perturb", lambda self, *args: drawn_.append(args) or honest(self, *args))

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("hubbub_client.ledger.ledger.Ledger.give_up", full)
    with pytest.raises(OSError, match="No space"):
        open_ledger("overspent")
    assert not drawn_
    monkeypatch.undo()
    assert open_ledger().status().committed == pytest.approx(7.0, abs=1e-6)
