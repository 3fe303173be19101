"""Surveys whose answers are sets, on a device: joined, answered, sent, accounted for, and kept."""

import numpy as np
import pytest
from devices import DAY_S
from surveys import LABELS, VISITS

from hubbub.filter import BayesianFilter
from hubbub.survey.survey import Survey
from hubbub.wire import report as wire
from hubbub_client.owner_page import descriptions
from hubbub_client.surveys.schedule import MEMOISED, scheduled_query

PBGRR = 'name = "pbgrr"\nboost_epsilon = 2.0'
EVOLVING = {
    name: Survey.parse(LABELS.replace('name = "grr"', f'name = "{mechanism}"'))
    for name, mechanism in (("subset", "subset"), ("unary", "unary"))
}
STATIC = {
    name: Survey.parse(VISITS.replace(PBGRR, f'name = "{name}"').replace("epsilon = 3.0", "epsilon = 1.0"))
    for name in ("subset", "unary", "levels")
}
PLAIN = VISITS.partition("[[category]]")[0]  # a tree has ranges of its own
STATIC["tree"] = Survey.parse(PLAIN.replace(PBGRR, 'name = "tree"').replace("epsilon = 3.0", "epsilon = 1.0"))
ALL = [*EVOLVING.values(), *STATIC.values()]
NAMES = [*(f"evolving {name}" for name in EVOLVING), *(f"static {name}" for name in STATIC)]


@pytest.mark.parametrize("survey", ALL, ids=NAMES)
def test_a_set_goes_the_whole_way_and_survives_restarts(survey, open_agent, collector, clock) -> None:
    for number in range(survey.rounds):
        agent = open_agent()
        agent.set("health", "good")
        if number == 0:
            agent.set("visits", 3)
            assert agent.enrol(survey).status == "enrolled"
            assert agent.status().committed == pytest.approx(
                survey.channel.epsilon * (survey.rounds if survey.attribute.kind == "evolving" else 1),
                abs=1e-8,
            )
        else:
            assert agent.enrol(survey).status == "already_enrolled"
        assert len(agent.answer()) == 1
        agent.close()
        agent = open_agent()  # killed between answer and upload
        assert agent.answer() == ()
        assert list(agent.upload().settled.values()) == ["accepted"]
        before = agent.status()
        agent.close()
        agent = open_agent()
        assert agent.status() == before
        agent.close()
        clock.now_s += DAY_S
    reports = collector.received
    assert [report.round for report in reports] == list(range(survey.rounds))
    assert len({report.id for report in reports}) == survey.rounds
    assert all(isinstance(r.symbol, bytes) and survey.channel.admits(r.symbol) for r in reports)
    if survey.attribute.kind == "static":
        assert len({report.symbol for report in reports}) == 1
    agent = open_agent()
    assert [wire.decode_report(report.data) for report in agent.sent()] == reports
    assert {report.data for report in agent.sent()} <= {
        wire.encode_report(report) for body in collector.bodies for report in collector.reports(body)
    }


@pytest.mark.parametrize("survey", ALL, ids=NAMES)
def test_the_loss_is_that_of_the_very_sets_and_is_said_in_words(survey, open_agent, clock) -> None:
    agent = open_agent()
    agent.enrol(survey)
    for _ in range(survey.rounds):
        agent.answer()
        agent.upload()
        clock.now_s += DAY_S
    (asked,) = agent.account().surveys
    symbols = [report.symbol for report in asked.sent]
    apart = symbols[:1] if survey.attribute.kind == "static" else symbols
    expected = sum(np.ptp(survey.channel.log_likelihood(symbol)) for symbol in apart)
    assert agent.status().loss == pytest.approx(expected, abs=1e-8)
    assert asked.loss == pytest.approx(expected, abs=1e-8)
    assert agent.account().loss == pytest.approx(expected, abs=1e-8)
    told = f"by a factor of at most {descriptions.factor(expected)}."
    if asked.loss == 0.0:  # each set was as likely from any value, as an empty one is
        told = "nobody has learned anything."
    assert told in descriptions.progress(asked)
    text = descriptions.symbol(survey, symbols[0])
    cells = np.flatnonzero(np.unpackbits(np.frombuffer(symbols[0], np.uint8), bitorder="little"))
    if 0 < len(cells) <= 12:
        assert text.startswith(f"the set of cells {', '.join(map(str, cells))} of 0 to")


def test_sets_on_one_pinned_value_share_a_coordinate_and_cost_less_than_their_sum(open_agent) -> None:
    """Held against a filter of its own that is told the same sets."""
    agent = open_agent()
    agent.set("visits", 7)
    for survey in STATIC.values():
        assert agent.enrol(survey).accepted
    assert len(agent.answer()) == len(STATIC)
    agent.upload()
    accountant = BayesianFilter(10.0)
    total = 0.0
    for asked in agent.account().surveys:
        (report,) = asked.sent
        (ticket,) = accountant.reserve_all([scheduled_query(asked.survey, MEMOISED, pin_version=0)])
        accountant.record(ticket, report.symbol)
        total += float(np.ptp(asked.survey.channel.log_likelihood(report.symbol)))
    assert agent.status().loss == pytest.approx(accountant.loss, abs=1e-9)
    assert accountant.loss <= total + 1e-9


def test_missing_a_correction_and_a_forget_work_on_sets(open_agent, collector, clock) -> None:
    survey = STATIC["subset"]
    agent = open_agent()
    agent.enrol(survey)
    agent.answer()  # missing is an input, too
    agent.upload()
    assert agent.correct("visits", 3).status == "corrected"
    clock.now_s += DAY_S
    agent.answer()
    agent.upload()
    first, second = collector.received
    assert survey.channel.admits(first.symbol) and survey.channel.admits(second.symbol)
    both = sum(np.ptp(survey.channel.log_likelihood(report.symbol)) for report in (first, second))
    assert agent.status().loss == pytest.approx(both, abs=1e-8)
    agent.forget()
    assert agent.status().loss == pytest.approx(both, abs=1e-8)
    assert agent.account().surveys[0].sent == () and agent._ledger.transcript() == []
