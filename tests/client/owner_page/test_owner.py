"""What an owner may know: exact where it was sent, silent and at its worst where it waits."""

import math
from importlib import import_module
from pathlib import Path
from typing import get_args

import pytest
from devices import DAY_S, HEALTH_SURVEY, VISITS_SURVEY, changed
from surveys import LABELS, START_S, VISITS

from hubbub.channels.channel import Channel
from hubbub.mechanisms.registry import KINDS
from hubbub.survey.survey import Survey
from hubbub.wire import report as wire
from hubbub_client import Account, Agent
from hubbub_client.ledger.stored import MAX_REFUSALS
from hubbub_client.owner_page import descriptions
from hubbub_client.surveys.schedule import Refusal

# Its answers differ in what they cost: a loss would tell which one waits.
UNEVEN = Survey.parse(LABELS.replace('name = "grr"', 'name = "grr"\nparticipation = 0.9'))
PBGRR = 'name = "pbgrr"\nboost_epsilon = 2.0'
LEVELS = Survey.parse(VISITS.replace(PBGRR, 'name = "levels"\noracles = "grr"'))
SURVEYS = {
    "grr": HEALTH_SURVEY,
    "participation": UNEVEN,
    "pbgrr": VISITS_SURVEY,
    "number levels": LEVELS,
    "subset": Survey.parse(LABELS.replace('name = "grr"', 'name = "subset"')),
    "unary": Survey.parse(LABELS.replace('name = "grr"', 'name = "unary"')),
    "levels": Survey.parse(VISITS.replace(PBGRR, 'name = "levels"')),
}


def whole(account: Account, agent: Agent) -> None:
    """The parts add up, and nothing is promised that the ledger does not keep."""
    assert account.loss == account.forgotten + sum(part.loss for part in account.parts)
    assert account.loss + account.reserved + account.left == pytest.approx(account.budget, abs=1e-9)
    status = agent.status()
    assert account.loss >= status.loss - 1e-9
    assert account.left <= account.budget - status.committed + 1e-9


def test_what_waits_counts_at_its_worst_and_says_nothing(open_agent, collector) -> None:
    """Whatever the answer will be, an owner who looks before it is sent sees the same account."""
    losses, accounts = set(), set()
    for said in range(LEVELS.channel.bins):
        folder_agent = open_agent()
        folder_agent._answerer._perturb = lambda *_, said=said: said
        folder_agent.enrol(LEVELS)
        folder_agent.answer()
        account = folder_agent.account()
        whole(account, folder_agent)
        losses.add(folder_agent.status().loss)
        accounts.add((account.loss, account.reserved, account.left, account.parts, account.surveys[0].sent))
        folder_agent.close()
        for file in Path(folder_agent._ledger.path).parent.iterdir():
            file.unlink()
    assert len(losses) > 1  # the ledger's own figure does tell
    assert len(accounts) == 1
    assert accounts.pop()[0] == pytest.approx(LEVELS.channel.epsilon, abs=1e-9)


def test_once_sent_the_account_is_what_the_answers_realised(open_agent, clock) -> None:
    agent = open_agent()
    for survey in (HEALTH_SURVEY, VISITS_SURVEY):
        agent.enrol(survey)
    for _ in range(2):
        agent.answer()
        agent.upload()
        clock.now_s += DAY_S
    account, status = agent.account(), agent.status()
    whole(account, agent)
    assert (account.loss, account.budget - account.left) == pytest.approx((status.loss, status.committed))
    assert [part.attributes for part in account.parts] == [("health",), ("visits",)]
    assert [asked.loss for asked in account.surveys] == pytest.approx([p.loss for p in account.parts])
    assert [len(asked.sent) for asked in account.surveys] == [2, 2]
    assert account.parts[0].loss == pytest.approx(2 * HEALTH_SURVEY.channel.epsilon, abs=1e-9)
    assert account.waiting == 0 and not account.paused


def test_the_account_is_the_same_after_a_restart_a_correction_and_a_forget(open_agent, clock) -> None:
    agent = open_agent(20.0)
    agent.set("visits", 3)
    for survey in (HEALTH_SURVEY, VISITS_SURVEY):
        agent.enrol(survey)
    agent.answer()
    agent.upload()
    assert agent.correct("visits", 7).status == "corrected"
    clock.now_s += DAY_S
    agent.answer()
    agent.upload()
    before = agent.account()
    whole(before, agent)
    agent.close()
    agent = open_agent(None)
    assert agent.account() == before
    agent.forget()
    after = agent.account()
    whole(after, agent)
    assert (after.forgotten, after.parts) == (after.loss, ())
    assert after.loss == pytest.approx(before.loss) and after.left == pytest.approx(before.left)
    assert [asked.state for asked in after.surveys] == ["left", "left"]


def test_what_was_withdrawn_may_have_arrived_and_counts_at_its_worst(open_agent, collector) -> None:
    agent = open_agent()
    collector.reply = lambda _: None
    agent.enrol(HEALTH_SURVEY)
    agent.answer()
    agent.upload()
    agent.opt_out(HEALTH_SURVEY)
    account = agent.account()
    whole(account, agent)
    assert account.surveys[0].sent == () and account.loss >= HEALTH_SURVEY.channel.epsilon


def test_refusals_are_kept_for_the_owner_with_reason_and_headroom(open_agent, clock) -> None:
    agent = open_agent(2.5)
    assert agent.enrol(HEALTH_SURVEY).reason == "over_budget"
    clock.now_s += 60
    agent.enrol(HEALTH_SURVEY)  # the same again
    agent.opt_out("visits")
    agent.enrol(VISITS_SURVEY)
    agent.close()
    first, second = open_agent(None).account().refusals
    assert (first.survey_id, first.reason) == (VISITS_SURVEY.id, "over_policy")
    assert (second.title, second.reason) == (HEALTH_SURVEY.title, "over_budget")
    assert (second.headroom, second.at_s) == (2.5, START_S + 10)
    assert "does not fit what is left of the budget" in descriptions.refused(second)
    assert "2.500 of the budget was free (2026-01-01 00:00 UTC)" in descriptions.refused(second)


def test_headroom_is_not_told_while_an_answer_waits(open_agent, clock) -> None:
    agent = open_agent(HEALTH_SURVEY.rounds * HEALTH_SURVEY.epsilon)
    assert agent.enrol(HEALTH_SURVEY).status == "enrolled"
    agent.answer()
    assert agent.enrol(VISITS_SURVEY).reason == "over_budget"
    agent.close()
    (refusal,) = open_agent(None).account().refusals
    assert refusal.headroom is None
    assert "what was free is not told, because an answer had not been sent" in descriptions.refused(refusal)


def test_a_survey_that_is_joined_after_all_is_refused_no_longer(open_agent) -> None:
    agent = open_agent()
    agent.opt_out(HEALTH_SURVEY)
    assert agent.enrol(HEALTH_SURVEY).reason == "opted_out"
    assert len(agent.account().refusals) == 1
    agent.opt_in(HEALTH_SURVEY)
    assert agent.enrol(HEALTH_SURVEY).accepted
    assert agent.account().refusals == ()


def test_refusals_do_not_fill_the_disk_and_are_forgotten(open_agent, clock) -> None:
    agent = open_agent(0.01)
    agent._ledger._db.execute("PRAGMA synchronous = OFF")  # this test is about numbers
    for version in range(2, MAX_REFUSALS + 10):
        clock.now_s += 1
        agent.enrol(changed(LABELS, version=str(version)))
    kept = agent.account().refusals
    assert [refused.version for refused in kept] == list(range(MAX_REFUSALS + 9, 9, -1))
    agent.forget()
    assert agent.account().refusals == ()


@pytest.mark.parametrize("name", SURVEYS)
def test_every_mechanism_has_words_for_itself_and_for_what_it_sends(name: str) -> None:
    survey = SURVEYS[name]
    assert "a random answer that depends" not in descriptions.mechanism(survey)
    channel: Channel = survey.channel
    for value in range(channel.inputs):
        said = channel.perturb(value)
        text = descriptions.symbol(survey, said)
        weights = channel.column(said)
        assert text.startswith(
            ("the set of", "the empty set") if isinstance(said, bytes) else f"number {said}"
        )
        if weights.max() == weights.min():
            assert text.endswith("every value sends it equally often")
            continue
        assert survey.input_labels[int(weights.argmax())] in text
        assert f"{descriptions.factor(math.log(weights.max() / weights.min()))} times as likely" in text


def test_no_mechanism_and_no_refusal_lacks_words() -> None:
    for module in KINDS.values():
        import_module(module)
    said = {
        kind: channel.__dict__.get("description", "")
        for kind, channel in Channel.kinds().items()
        if kind in KINDS
    }
    assert set(said) == set(KINDS)
    assert all(sentence.startswith("The device ") for sentence in said.values()), said
    assert len(set(said.values())) == len(said)
    assert set(descriptions._REFUSALS) == {*get_args(Refusal)}


def test_numbers_that_bound_are_rounded_up() -> None:
    assert [descriptions.factor(loss) for loss in (0.0, 1.0, 3.0, 5.0, 20.0)] == [
        "1.00",
        "2.72",
        "20.09",
        "149",
        "4.86e+08",
    ]
    assert (
        descriptions.example(1.0)
        == "Somebody who thought it even can now be at most 73.11 % sure: 2.72 to 1."
    )
    assert "almost certain" in descriptions.example(20.0) and descriptions.example(0.0) == ""


def test_times_are_said_in_whole_units() -> None:
    assert (
        descriptions.schedule(HEALTH_SURVEY)
        == "3 rounds of 1 day, 2026-01-01 00:00 UTC to 2026-01-04 00:00 UTC"
    )
    assert [descriptions.duration(s) for s in (1, 60, 7200, 86_400, 604_800, 90)] == [
        "1 seconds",
        "1 minute",
        "2 hours",
        "1 day",
        "7 days",
        "90 seconds",
    ]
    assert descriptions.moment(1e18) == "1e+18 s after 1970"


@pytest.mark.parametrize(
    ("rounds", "rotation", "unit", "said"),
    [
        (52, 12, "1d", "one of every 12 days, drawn on this device: 52 rounds of 1 day, "),
        (12, 12, "1d", "one of these 12 days, drawn on this device: 12 rounds of 1 day, "),
        (12, 24, "1h", "at most one of these 12 hours, drawn on this device: 12 rounds of 1 hour, "),
        (52, 12, "7d", "one of every 12 rounds, drawn on this device: 52 rounds of 7 days, "),
    ],
)
def test_a_rotation_is_said_without_the_round_that_was_drawn(rounds, rotation, unit, said) -> None:
    text = LABELS.replace("rounds = 3", f"rounds = {rounds}\nrotation = {rotation}")
    survey = Survey.parse(text.replace('round = "1d"', f'round = "{unit}"'))
    assert descriptions.schedule(survey).startswith(said)


def test_the_bytes_decode_to_what_is_said_of_them(open_agent, collector) -> None:
    agent = open_agent()
    agent.enrol(HEALTH_SURVEY)
    agent.answer()
    agent.upload()
    (report,) = agent.account().surveys[0].sent
    decoded = wire.decode_report(report.data)
    assert (decoded.digest, decoded.id, decoded.round, decoded.symbol) == (
        report.digest,
        report.id,
        report.round,
        report.symbol,
    )
    assert collector.received == [decoded]


def test_more_than_a_filter_counts_is_over_estimated_and_no_error(open_agent, monkeypatch) -> None:
    """Answers that cost less than they reserve make room: all at their worst may be past any filter."""
    agent = open_agent()
    for survey in (HEALTH_SURVEY, VISITS_SURVEY):
        agent.enrol(survey)
    agent.answer()
    agent.upload()
    exact = agent.account()
    monkeypatch.setattr("hubbub_client.owner_page.account.MAX_BUDGET", 1.0)
    crude = agent.account()
    assert crude.loss + crude.reserved >= exact.loss + exact.reserved - 1e-9
    assert crude.loss >= exact.loss - 1e-9 and crude.left <= exact.left + 1e-9
