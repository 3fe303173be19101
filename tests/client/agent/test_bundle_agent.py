"""Agents of bundles: one coin for life, one reservation, an answer that goes to the values that it read."""

from __future__ import annotations

import math
import os
import sqlite3
from collections import Counter
from pathlib import Path

import agent_harness
import msgpack
import numpy as np
import pytest
from bundles import attributes, bundle
from devices import DAY_S, Clock, Collector, opener
from surveys import START_S

from hubbub.filter import BayesianFilter
from hubbub.mechanisms import subset_selection
from hubbub.survey.survey import Survey
from hubbub_client import Agent, LedgerCorruptError
from hubbub_client.owner_page import descriptions
from hubbub_client.surveys.rotation import coin_toss

SIZES = {"age": 4, "sex": 2, "job": 3}
CUTS = {"low": {"age": [(0, 0), (1, 3)]}, "high": {"age": [(0, 2), (3, 3)]}}
PAIRS = bundle(SIZES, name="pairs")
LOW = bundle(SIZES, name="low", cuts=CUTS["low"], epsilon=0.7)
HIGH = bundle(SIZES, name="high", cuts=CUTS["high"], epsilon=0.7)
EVOLVING = bundle({"mood": 3, "steps": 2}, name="daily", kind="evolving", rounds=3)
AGE_TEXT = """
id = "age"
version = 1
title = "Age"
epsilon = 0.5
planned_devices = 1000
schedule = { start = 2026-01-01T00:00:00Z, round = "24h", rounds = 2, lateness = "6h", skew = "5m" }
attribute = { id = "age", kind = "static", type = "integer", low = 0, high = 3 }
mechanism = { name = "grr" }
"""
AGE = Survey.parse(AGE_TEXT)
ONCE = Survey.parse(AGE_TEXT.replace("rounds = 2", "rounds = 1").replace('id = "age"', 'id = "once"', 1))


def _together() -> Survey:
    """A bundle of which all but three tosses in 2^32 pick the interaction of age, in two parts, and sex."""
    fields = msgpack.unpackb(bundle(SIZES, name="together", tables=TOLD_TOGETHER, cuts=CUTS["low"]).canonical)
    held = [
        subset_selection(cells, epsilon=1.0, size=size).p_draws for cells, size in ((3, 1), (4, 1), (9, 3))
    ]
    fields[7] |= {"orders": [1, 1, 1, 2], "members": [1, 2, 3, 1, 2], "shares": [1, 1, 1, 2**32 - 3]}
    fields[7] |= {"subset": [1, 1, 1, 3], "held": [held[i] for i in (0, 0, 1, 2)], "classes": [1, 1, 1, 3]}
    fields[7] = dict(sorted(fields[7].items()))
    return Survey.from_canonical(msgpack.packb(fields))


TOLD_TOGETHER = '[["age", "sex"], ["job"]]'
TOGETHER = _together()


@pytest.fixture
def clock() -> Clock:
    return Clock(START_S + 10.0)


@pytest.fixture
def collector() -> Collector:
    return Collector()


@pytest.fixture
def open_agent(tmp_path: Path, clock: Clock, collector: Collector):
    with opener(tmp_path, clock, collector) as make:
        yield lambda **settings: registered(make(**settings))


def registered(agent: Agent) -> Agent:
    for attribute in (*attributes(SIZES), *attributes({"mood": 3, "steps": 2}, "evolving")):
        agent.register(attribute)
    return agent


TOLD = {"age": 2, "sex": 1, "job": 0}


def told(agent: Agent) -> None:
    for name, value in TOLD.items():
        agent.set(name, value)


def kinds_of(agent: Agent, survey: Survey | None = None) -> list[str]:
    rows = agent._state.ledger.transcript()
    return [
        row.kind
        for row in rows
        if row.symbol is not None and survey in (None, agent._state.surveys[row.digest])
    ]


def test_an_answer_is_about_the_part_that_its_coin_picked_and_reads_no_other_value(
    open_agent, clock: Clock, collector: Collector, tmp_path: Path
):
    agent = open_agent()
    assert agent.enrol(PAIRS).status == "enrolled"
    assert agent.status().committed == pytest.approx(1.0, abs=1e-6)
    seed = agent._state.enrolments[PAIRS.digest].slot_seed
    part = PAIRS.channel.part_at(coin_toss(seed, 0))
    told(agent)
    agent.answer()
    agent.upload()
    assert PAIRS.channel.part_of(collector.received[0].symbol) == part
    members = {PAIRS.attributes[j].id for j in PAIRS.channel.parts[part].members}
    pinned = {name for name, each in agent._state.attributes.items() if each.memoised is not None}
    assert pinned == members
    assert agent.status().loss == pytest.approx(1.0, abs=1e-6)
    assert kinds_of(agent) == ["resolve"]
    clock.now_s = START_S + DAY_S + 10.0
    agent.answer()
    agent.upload()
    assert [each.symbol for each in collector.received] == [collector.received[0].symbol] * 2


def test_an_interaction_is_answered_joined_to_its_values_replayed_and_told(open_agent, collector: Collector):
    agent = open_agent()
    assert agent.enrol(TOGETHER).status == "enrolled" and agent.enrol(HIGH).accepted
    assert agent.status().committed == pytest.approx(1.7, abs=1e-6)
    told(agent)
    agent.answer()
    agent.upload()
    (symbol,) = [each.symbol for each in collector.received if each.digest == TOGETHER.digest]
    assert TOGETHER.channel.part_of(symbol) == 3
    table = np.unpackbits(np.frombuffer(symbol[1:], np.uint8), count=9, bitorder="little").reshape(3, 3)
    assert table.sum(axis=0).tolist() == table.sum(axis=1).tolist() == [1, 1, 1]
    assert kinds_of(agent, TOGETHER) == ["resolve"]
    assert "about how age and sex go together, part 4 of 4" in descriptions.symbol(TOGETHER, symbol)
    assert "how your answers go together, and nothing of either" in descriptions.mechanism(TOGETHER)
    assert "go together" not in descriptions.mechanism(PAIRS)
    before = agent.status()
    agent.close()
    again = open_agent()
    assert (again.status().committed, again.status().loss) == (before.committed, before.loss)


def test_coins_of_many_devices_follow_the_shares():
    """45,000 coins of three equal parts: within 6 errors each, 6 sigma of Bin(45,000, 1/3) = 600."""
    shares = np.array([part.share for part in PAIRS.channel.parts]) / 2**32
    picked = Counter(
        PAIRS.channel.part_at(coin_toss(number.to_bytes(32, "big"), 0)) for number in range(45_000)
    )
    for part, share in enumerate(shares):
        assert abs(picked[part] - 45_000 * share) < 6 * math.sqrt(45_000 * share * (1 - share))


def test_surveys_that_cut_one_attribute_elsewhere_speak_of_the_same_value(open_agent, tmp_path: Path):
    """Truth by brute force over every record: what the filter says is neither below it nor far above."""
    for life in range(6):
        folder = tmp_path / str(life)
        folder.mkdir()
        with opener(folder, Clock(START_S + 10.0), Collector()) as make:
            agent = registered(make(budget=20.0))
            for survey in (PAIRS, LOW, HIGH, AGE):
                assert agent.enrol(survey).accepted
            told(agent)
            before = agent.status().committed
            agent.answer()
            after = agent.status()
            assert after.committed <= before
            losses = np.zeros((4 + 1) * (2 + 1) * (3 + 1))
            for survey in (PAIRS, LOW, HIGH, AGE):
                symbol = agent._state.filter_state.recorded[survey.digest, -1]
                losses += [math.log(survey.channel.column(symbol)[x]) for x in every_input(survey)]
            truth = float(losses.max() - losses.min())
            assert truth <= after.committed + 1e-9
            assert after.committed == pytest.approx(truth, abs=1e-6) or (
                "record" in [kind for survey in (PAIRS, LOW, HIGH) for kind in kinds_of(agent, survey)]
            )


def every_input(survey: Survey) -> list[int]:
    """The input of every record, by the public door: age changes slowest, missing last."""
    found = []
    for age in (0, 1, 2, 3, None):
        for sex in (0, 1, None):
            for job in (0, 1, 2, None):
                values = {"age": age, "sex": sex, "job": job}
                found.append(survey.input_of(*(values[each.id] for each in survey.attributes)))
    return found


def test_a_reopened_ledger_replays_every_branch_to_the_same_account(open_agent, tmp_path: Path):
    agent = open_agent()
    for survey in (PAIRS, LOW, AGE, HIGH, EVOLVING):
        assert agent.enrol(survey).accepted
    told(agent)
    agent.answer()
    before = agent.status()
    account = agent.account()
    agent.close()
    again = open_agent()
    assert again.status().committed == before.committed
    assert again.status().loss == before.loss
    assert again.account() == account
    assert "resolve" in kinds_of(again)


def test_a_correction_costs_only_where_the_part_reads_it_and_keeps_the_coin(open_agent, clock: Clock):
    agent = open_agent(budget=10.0)
    agent.enrol(PAIRS)
    told(agent)
    agent.answer()
    symbol = agent._state.filter_state.recorded[PAIRS.digest, -1]
    part = PAIRS.channel.part_of(symbol)
    members = [PAIRS.attributes[j].id for j in PAIRS.channel.parts[part].members]
    (other,) = set(SIZES) - set(members)
    committed = agent.status().committed
    agent.correct(other, 0 if other != "job" else 1)
    assert agent.status().committed == committed
    assert agent._state.filter_state.recorded[PAIRS.digest, -1] == symbol
    name = members[0]
    assert agent.correct(name, 0 if name != "job" else 1).status == "corrected"
    assert agent.status().committed == pytest.approx(committed + 1.0, abs=1e-6)
    clock.now_s = START_S + DAY_S + 10.0
    agent.answer()
    redrawn = agent._state.filter_state.recorded[PAIRS.digest, -1]
    assert PAIRS.channel.part_of(redrawn) == part
    status = agent.status()
    agent.close()
    assert open_agent(budget=10.0).status().committed == status.committed


def test_a_correction_before_the_answer_forfeits_nothing(open_agent, tmp_path: Path):
    agent = open_agent()
    agent.enrol(AGE)
    told(agent)
    agent.answer()
    agent.enrol(PAIRS)
    committed = agent.status().committed
    assert agent.correct("age", 0).status == "corrected"
    assert agent.status().committed == pytest.approx(committed + 0.5, abs=1e-6)  # that of AGE alone
    agent.answer()
    assert agent._state.filter_state.recorded[PAIRS.digest, -1]
    agent.close()
    open_agent()


def test_rounds_of_an_evolving_bundle_are_never_joined_and_toss_anew(
    open_agent, clock: Clock, tmp_path: Path
):
    agent = open_agent()
    assert agent.enrol(EVOLVING).accepted
    assert agent.status().committed == pytest.approx(3.0, abs=1e-6)
    for day in range(3):
        clock.now_s = START_S + day * DAY_S + 10.0
        agent.set("mood", day)
        agent.set("steps", 1)
        agent.answer()
    assert kinds_of(agent) == ["record"] * 3
    assert agent.status().committed == pytest.approx(3.0, abs=1e-6)


def test_leaving_and_joining_again_keeps_coin_and_answer(open_agent, clock: Clock):
    agent = open_agent()
    agent.enrol(PAIRS)
    seed = agent._state.enrolments[PAIRS.digest].slot_seed
    told(agent)
    agent.answer()
    committed = agent.status().committed
    agent.opt_out(PAIRS)
    agent.opt_in(PAIRS)
    clock.now_s = START_S + DAY_S + 10.0
    assert agent.enrol(PAIRS).status == "enrolled"
    assert agent._state.enrolments[PAIRS.digest].slot_seed == seed
    assert agent.status().committed == committed


def test_a_row_whose_part_or_branch_was_changed_is_found(open_agent, tmp_path: Path):
    agent = open_agent()
    agent.enrol(PAIRS)
    told(agent)
    agent.answer()
    agent.close()
    db = sqlite3.connect(tmp_path / "ledger.db")
    db.execute("DROP TRIGGER transcript_is_not_rewritten")
    db.execute("UPDATE transcript SET part_generations = 1 WHERE kind = 3")
    db.commit()
    db.close()
    with pytest.raises(LedgerCorruptError):
        open_agent()


@pytest.mark.parametrize("statement", range(28, 60))
def test_a_kill_leaves_an_answer_whole_or_not_at_all(
    tmp_path: Path, clock: Clock, collector: Collector, statement: int
):
    """The process dies before its n-th SQL statement: each of two answers, the second one a part's."""
    with opener(tmp_path, clock, collector) as make:
        agent = registered(make())
        for survey in (AGE, PAIRS):
            assert agent.enrol(survey).accepted
        before = agent.status()
        seed = agent._state.enrolments[PAIRS.digest].slot_seed
    child = os.fork()
    if child == 0:
        agent_harness.die_before_statement(statement)
        with opener(tmp_path, clock, collector) as make:
            again = registered(make())
            told(again)
            again.answer()
        os._exit(0)
    died = os.waitpid(child, 0)[1] == 9
    assert died or statement > 50
    db = sqlite3.connect(tmp_path / "ledger.db")
    (answered,) = db.execute("SELECT count(*) FROM transcript WHERE kind IN (1, 3)").fetchone()
    db.close()
    with opener(tmp_path, clock, collector) as make:
        agent = registered(make())
        assert agent.status().committed <= before.committed
        assert agent.status().waiting == answered
        assert agent._state.enrolments[PAIRS.digest].slot_seed == seed
        agent.answer()
        assert agent.status().waiting == 2
        symbol = agent._state.filter_state.recorded[PAIRS.digest, -1]
        assert PAIRS.channel.part_of(symbol) == PAIRS.channel.part_at(coin_toss(seed, 0))


def test_what_the_owner_reads_says_what_is_asked_and_what_was_said(open_agent):
    agent = open_agent()
    agent.enrol(PAIRS)
    told(agent)
    agent.answer()
    agent.upload()
    account = agent.account()
    assert account.loss == pytest.approx(agent.status().loss, abs=1e-9)
    assert account.surveys[0].sent[0].loss == pytest.approx(1.0, abs=1e-6)


TABLE = """
id = "{name}"
version = 1
title = "T"
epsilon = 0.5
planned_devices = 1000
schedule = {{ start = 2026-01-01T00:00:00Z, round = "24h", rounds = 2, lateness = "6h", skew = "5m" }}
mechanism = {{ name = "grr" }}
"""
HALVES = [(0, 29), (30, 59)]


def table_of(name: str, *attributes: str) -> Survey:
    asked = "".join(
        f'[[attribute]]\nid = "{each}"\nkind = "static"\ntype = "integer"\nlow = 0\nhigh = 59\n'
        + "".join(
            f'[[attribute.category]]\nname = "{low} to {high}"\nrange = [{low}, {high}]\n'
            for low, high in HALVES
        )
        for each in attributes
    )
    return Survey.parse(TABLE.format(name=name) + asked)


def test_a_correction_before_a_part_is_joined_replays(tmp_path: Path) -> None:
    """Two tables are reserved anew together, and a replay closes the old values between them."""
    sizes = {"a": 60, "b": 60, "c": 60, "d": 2}
    tables = [table_of("ab", "a", "b"), table_of("ac", "a", "c")]
    asked = bundle({"b": 60, "d": 2}, name="u", tables='[["b","d"]]', cuts={"b": HALVES})
    with opener(tmp_path, Clock(START_S + 10.0), Collector()) as make:
        agent = make(20.0)
        for each in attributes(sizes):
            agent.register(each)
        for survey in tables:
            assert agent.enrol(survey).accepted
        for name in sizes:
            agent.set(name, 1)
        agent.answer()
        assert agent.enrol(asked).accepted
        assert agent.correct("a", 40).status == "corrected"
        agent.answer()
        committed = agent.status().committed
        agent.close()
        assert make(None).status().committed == committed


def test_one_part_of_a_bundle_is_mapped_once() -> None:
    form = bundle({"b": 60, "d": 2}, name="u", tables='[["b","d"]]', cuts={"b": HALVES}).form
    assert form.part_mapping((0, 1)) is form.part_mapping((0, 1))


def test_a_correction_reserves_nothing_where_every_round_is_answered(open_agent) -> None:
    """A bundle of one round and a survey of one: both are still open, and neither asks again."""
    agent = open_agent(budget=10.0)
    for survey in (bundle(SIZES, name="once", rounds=1), ONCE):
        assert agent.enrol(survey).accepted
    told(agent)
    agent.answer()
    before = agent.status().committed
    for name, value in {"age": 0, "sex": 0, "job": 1}.items():
        assert agent.correct(name, value).status == "corrected"
    assert agent.status().committed == before


@pytest.mark.parametrize("apart", [False, True])
def test_a_bundle_that_was_left_and_joined_again_answers_with_the_corrected_value(
    open_agent, clock: Clock, apart: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a part that reads it; a correction of another attribute costs nothing, and keeps the symbol."""
    if apart:
        monkeypatch.setattr(BayesianFilter, "branch_of", lambda *_: "apart")
    agent = open_agent(budget=10.0)
    asked = bundle(SIZES, name="thrice", rounds=4)
    agent.enrol(asked)
    told(agent)
    agent.answer()
    symbol, key = agent._state.filter_state.recorded[asked.digest, -1], (asked.digest, -1)
    members = [asked.attributes[j].id for j in asked.channel.parts[asked.channel.part_of(symbol)].members]
    (other,) = set(SIZES) - set(members)
    corrections = [(other, 0, False), (members[0], 0, True), (other, 1, False)]
    for day, (name, value, anew) in enumerate(corrections, start=1):
        # Two answers that share what is left of the part may have given away less together than each.
        committed = agent.status().committed
        agent.opt_out(asked)
        assert agent.correct(name, (TOLD[name] + 1 + value) % SIZES[name]).status == "corrected"
        agent.opt_in(asked)
        clock.now_s = START_S + day * DAY_S + 10.0
        assert agent.enrol(asked).status == "enrolled"
        committed += 1.0 if anew else 0.0
        assert agent.status().committed == pytest.approx(committed, abs=1e-6)
        assert (key in agent._state.filter_state.open) == anew
        agent.answer()
        assert len(agent._state.answered[asked.digest]) == day + 1
    status = agent.status()
    agent.close()
    assert open_agent(budget=10.0).status().committed == status.committed


def test_evolving_values_that_the_part_does_not_read_are_not_kept(open_agent, tmp_path: Path) -> None:
    asked = bundle({"mood": 3, "steps": 2}, name="one", kind="evolving", tables='"single"')
    agent = open_agent()
    assert agent.enrol(asked).accepted
    seed = agent._state.enrolments[asked.digest].slot_seed
    members = asked.channel.parts[asked.channel.part_at(coin_toss(seed, 1))].members
    for name in ("mood", "steps"):
        agent.set(name, 1)
    assert [each.attribute for each in agent._state.ledger.kept_values()] == [
        asked.attributes[member].id for member in members
    ]
