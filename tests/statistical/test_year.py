"""A year of surveys under three accounts: the thin part of `make evidence NAME=year`."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from hubbub.channels import Symbol
from hubbub.filter import MAX_BUDGET, BayesianFilter, Query
from hubbub_client import Agent, Policy
from hubbub_client.testing import FakeClock, FakeCollector
from hubbub_lab.filters import SimplifiedFilter

BENCH = Path(__file__).parents[2] / "bench"
sys.path.append(str(BENCH))  # at the end: a module there is called coverage
SPEC = importlib.util.spec_from_file_location("year", BENCH / "year.py")
assert SPEC is not None and SPEC.loader is not None
bench = importlib.util.module_from_spec(SPEC)
sys.modules[SPEC.name] = bench
SPEC.loader.exec_module(bench)
import year_lives  # noqa: E402 - found once bench is on the path

pytestmark = pytest.mark.statistical


@pytest.fixture(scope="module")
def drawn():
    return bench.fleet(12, seed=4)


class Compared:
    """The full filter decides; the other accounts are told the same, and must never be below it."""

    def __init__(self, budget: float) -> None:
        self.full = BayesianFilter(budget)
        self.others = [SimplifiedFilter(MAX_BUDGET), year_lives.AddedEpsilons(MAX_BUDGET)]
        self.steps = self.apart = 0

    def _check(self) -> None:
        full, simplified, added = (each.committed for each in (self.full, *self.others))
        assert full <= simplified <= added + 1e-8
        self.steps += 1
        self.apart += simplified > full + 1e-6

    def reserve_all(self, queries: Sequence[Query]) -> tuple[int, ...] | None:
        tickets = self.full.reserve_all(queries)
        if tickets is not None:
            for each in self.others:
                assert each.reserve_all(queries) == tickets
            self._check()
        return tickets

    def record(self, ticket: int, symbol: Symbol) -> None:
        for each in (self.full, *self.others):
            each.record(ticket, symbol)
        self._check()

    def close(self, coordinate: object) -> None:
        for each in (self.full, *self.others):
            each.close(coordinate)

    def close_joined(self, coordinate: object) -> bool:
        for each in self.others:
            each.close_joined(coordinate)
        return self.full.close_joined(coordinate)


def test_on_every_life_the_full_filter_holds_no_more_than_the_others(drawn) -> None:
    """Whatever was answered and corrected, it accepts what they accept: none of them has more room left.

    Of whole lives this does not follow - what one accepts early another has left for later - so that is
    counted by the command, and not asserted here.
    """
    apart = 0
    for device in range(drawn.devices):
        account = Compared(bench.BUDGET)
        life = year_lives.Life(drawn, device, account).live()
        assert account.steps > 50 and life.sent
        apart += account.apart
    assert apart > 0


def test_a_fleet_sends_more_by_the_full_filter_than_by_the_simplified_one_and_least_by_adding(drawn) -> None:
    sent = [
        sum(len(life.sent) for life in bench.lives(drawn, make, bench.BUDGET))
        for make in bench.ACCOUNTS.values()
    ]
    assert sent[0] >= sent[1] > 1.05 * sent[2]
    assert sent[0] < bench.wished(drawn).sum()


def test_with_room_for_everything_all_accounts_send_what_was_wished_for(drawn) -> None:
    wish = bench.wished(drawn)
    for make in bench.ACCOUNTS.values():
        lived = bench.lives(drawn, make, 200.0)
        weeks = [week for life in lived for _, week, _ in life.sent]
        assert np.array_equal(np.bincount(weeks, minlength=bench.WEEKS), wish)
        assert not any(life.refused or life.uncorrected for life in lived)


def test_intervals_widened_by_the_selection_bound_hold_the_share_among_all_asked() -> None:
    """24 devices, 27 surveys that want shares; the seed is fixed.

    Statistic: cells whose widened interval misses. An interval alone misses 5 %, and the bound is far wider
    than chance, so that a tenth of some 100 cells says that one of them is wrong.
    """
    drawn = bench.fleet(24, seed=8)
    found = bench.outcome(drawn, "full filter", bench.BUDGET)
    held = np.concatenate([one.held for one in found.releases.values()])
    assert held.mean() > 0.9
    for one in found.releases.values():
        assert (one.bias <= one.bound + 1e-9).all()


def test_a_real_agent_decides_and_sends_as_a_life_does(tmp_path, drawn) -> None:
    """One device goes through the year with a ledger on disk, correcting, being off, being refused."""
    device = int(
        np.argmax([sum(weeks[i] < 52 for weeks in drawn.corrected.values()) for i in range(drawn.devices)])
    )
    life = year_lives.Life(drawn, device, BayesianFilter(bench.BUDGET)).live()
    start_s, week_s = year_lives.START_S, year_lives.WEEK_S
    clock = FakeClock(float(start_s))
    place = {survey.digest: number for number, survey in enumerate(drawn.surveys)}
    sent: list[tuple[int, int]] = []
    with Agent(
        tmp_path / "ledger.db",
        "",
        budget=bench.BUDGET,
        policy=Policy(require_opt_in="no"),
        clock=clock,
        http=FakeCollector(clock=clock),
    ) as agent:
        agent._ledger._db.execute("PRAGMA synchronous = OFF")
        versions = dict.fromkeys(year_lives.STATIC, 0)

        def symbol(survey, _encoded) -> int:
            number = place[survey.digest]
            ask = drawn.asks[number]
            week = (int(clock.now_s) - start_s) // week_s
            static = ask.attribute in year_lives.STATIC
            row = versions[ask.attribute] if static else (week - ask.start) // ask.every
            return int(drawn.symbols[number][row, device])

        agent._answerer._perturb = symbol
        for survey in drawn.surveys:
            agent.register(survey.attribute)
        for name in year_lives.STATIC:
            agent.set(name, int(drawn.values[name][0, device]) + year_lives.RANGES[name][0])
        due = {name: int(drawn.corrected[name][device]) for name in year_lives.STATIC}
        for week in np.flatnonzero(drawn.on[:, device]).tolist():
            clock.now_s = float(start_s + week * week_s + 60)
            for name in [name for name, when in due.items() if when <= week]:
                del due[name]
                value = int(drawn.values[name][1, device]) + year_lives.RANGES[name][0]
                done = agent.correct(name, value)
                versions[name] = int(done.status == "corrected")
            for number, survey in enumerate(drawn.surveys):
                ask = drawn.asks[number]
                if ask.start <= week < ask.start + ask.weeks and drawn.willing[number, device]:
                    agent.enrol(survey)
            sent += [(place[answer.digest], week) for answer in agent.answer()]
        status = agent.status()
    assert sorted(sent) == sorted((number, week) for number, week, _ in life.sent)
    assert status.committed == life.account.committed
    assert life.refused > 0


def test_the_page_says_what_was_measured() -> None:
    """The sentences for a manager in docs/filter-in-use.md have the numbers of the newest runs."""
    docs = BENCH.parent / "docs"
    page = " ".join((docs / "filter-in-use.md").read_text(encoding="utf-8").split())

    def cells(run: str, name: str) -> list[str]:
        text = (BENCH.parent / "evidence" / f"{run}.json").read_text(encoding="utf-8")
        lines = json.loads(text)[-1]["output"]
        row = next(line for line in lines if line.startswith(f"| {name} |"))
        return [cell.strip() for cell in row.strip("|").split("|")]

    full, added = cells("year", "full filter"), cells("year", "adding epsilons")
    assert f"the filter let in {full[2]} of the reports" in page
    assert f"adding up epsilons {added[2]}: by the last quarter, adding had left five of its six" in page
    assert added[6].endswith("(5 -)")
    for name in ("a memoised answer, 30 rounds", "a broken memo (control), 30 rounds", "the same, 30 rounds"):
        row = cells("longitudinal", name)
        assert row[1].split(" of ")[0] in page
        assert row[3] in page
    for name in ("year", "longitudinal"):
        assert f"(figures/{name}.svg)" in page and (docs / "figures" / f"{name}.svg").is_file()


def test_the_plot_has_a_line_for_every_account(tmp_path, drawn) -> None:
    empty = bench.Outcome([], np.zeros(bench.WEEKS, dtype=np.int64), {})
    shares = {name: [1.0] * len(bench.BUDGETS) for name in bench.ACCOUNTS}
    bench.plot(tmp_path / "year.svg", drawn, dict.fromkeys(bench.ACCOUNTS, empty), shares)
    text = (tmp_path / "year.svg").read_text(encoding="utf-8")
    assert all(text.count(name) == 2 for name in bench.ACCOUNTS)
