"""One verdict per report: the tests in their order, the edges of the round window."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from surveys import LABELS, START_S

from hubbub.mechanisms import grr, unary
from hubbub.survey.survey import Survey
from hubbub.wire.record import NO_ROUND
from hubbub.wire.report import SHORT_REPORT, WIDE_REPORT, Malformed, Report
from hubbub_collector.admission import Admission, AdmissionRules, Verdict, index_surveys
from hubbub_collector.errors import CollectorError

DIGEST = b"d" * 16
# Rounds of 1,000 s from 10,000 on; late 100 s after the end, early more than 30 s before the start.
TERMS = AdmissionRules(
    channel=grr(4, epsilon=1.0), start_s=10_000, round_s=1000, rounds=3, lateness_s=100, skew_s=30
)


def report(number: int = 0, symbol: int = 0, digest: bytes = DIGEST, identifier: int = 0) -> Report:
    return Report(digest, number, identifier.to_bytes(16, "big"), symbol)


def judge(one: Report | Malformed, now_s: float, terms: AdmissionRules = TERMS) -> Verdict:
    (verdict,) = Admission({DIGEST: terms}).judge([one], now_s)
    return verdict


@pytest.mark.parametrize(
    ("number", "now_s", "outcome"),
    [
        (0, 9_969.999, "early"),
        (0, 9_970.0, "accepted"),
        (0, 10_500.0, "accepted"),
        (0, 11_100.0, "accepted"),
        (0, 11_100.001, "late"),
        (1, 10_969.999, "early"),
        (1, 10_970.0, "accepted"),
        (1, 12_100.0, "accepted"),
        (1, 12_100.001, "late"),
        (2, 13_100.0, "accepted"),
        (2, 13_100.001, "late"),
    ],
)
def test_a_round_is_open_from_start_minus_skew_to_end_plus_lateness(
    number: int, now_s: float, outcome: str
) -> None:
    assert judge(report(number), now_s) == Verdict(outcome, (DIGEST, number))


@pytest.mark.parametrize(
    ("number", "now_s", "outcome", "tallied"),
    [
        (1, 9_970.0, "early", 1),
        (1, 9_969.999, "early", NO_ROUND),
        (2, 9_970.0, "early", NO_ROUND),
        (0, 12_100.0, "late", 0),
        (0, 12_100.001, "late", NO_ROUND),
        (1, 13_100.0, "late", 1),
    ],
)
@pytest.mark.parametrize("symbol", [0, 99])
def test_a_refusal_names_no_round_that_is_far_off(
    number: int, now_s: float, outcome: str, tallied: int, symbol: int
) -> None:
    expected = outcome if symbol == 0 else "invalid"
    assert judge(report(number, symbol), now_s) == Verdict(expected, (DIGEST, tallied))


def test_refusals_of_every_round_there_is_name_few() -> None:
    terms = dataclasses.replace(TERMS, rounds=100_000)
    verdicts = Admission({DIGEST: terms}).judge([report(n) for n in range(100_000)], 50_000_500.0)
    assert {verdict.key[1] for verdict in verdicts if verdict.key} == {NO_ROUND, 49_989, 49_990, 49_991}


@pytest.mark.parametrize("number", [3, 4, 2**31 - 1])
def test_a_round_that_the_schedule_lacks_is_invalid_and_tallied_under_no_round(number: int) -> None:
    assert judge(report(number), 10_500.0) == Verdict("invalid", (DIGEST, NO_ROUND))


@pytest.mark.parametrize(
    ("symbol", "outcome"), [(0, "accepted"), (3, "accepted"), (4, "invalid"), (2**32 - 1, "invalid")]
)
def test_a_symbol_must_lie_below_the_number_of_outputs(symbol: int, outcome: str) -> None:
    assert judge(report(symbol=symbol), 10_500.0) == Verdict(outcome, (DIGEST, 0))


@pytest.mark.parametrize("now_s", [0.0, 10_500.0, 1e6])
def test_an_invalid_symbol_is_invalid_whatever_the_time(now_s: float) -> None:
    assert judge(report(symbol=4), now_s).outcome == "invalid"


def test_an_unknown_digest_is_charged_to_no_survey() -> None:
    assert judge(report(digest=b"e" * 16), 10_500.0) == Verdict("unknown", None)


def test_what_is_no_report_is_invalid_and_charged_to_no_survey() -> None:
    assert judge(Malformed("no array"), 10_500.0) == Verdict("invalid", None)


def test_verdicts_come_in_the_order_of_the_reports() -> None:
    reports = [report(), Malformed("x"), report(1), report(symbol=9), report(digest=b"e" * 16), report(9)]
    outcomes = [v.outcome for v in Admission({DIGEST: TERMS}).judge(reports, 10_500.0)]
    assert outcomes == ["accepted", "invalid", "early", "invalid", "unknown", "invalid"]


OTHER = b"o" * 16
ROUNDS = {
    DIGEST: TERMS,
    OTHER: dataclasses.replace(TERMS, start_s=10_500),
    b"s" * 16: dataclasses.replace(TERMS, channel=unary(9, epsilon=1.0)),
    b"w" * 16: dataclasses.replace(
        TERMS, channel=grr(1000, epsilon=1.0), rounds=400, start_s=TERMS.start_s - 300 * TERMS.round_s
    ),
}


@given(
    st.lists(
        st.lists(
            st.tuples(
                st.sampled_from([*ROUNDS, b"?" * 16]),
                st.sampled_from([0, 0, 1, 2, 3, 300]),
                st.sampled_from([0, 3, 4, 300]),
                st.sampled_from([9_000.0, 9_970.0, 10_500.0, 11_100.0, 11_100.5, 12_000.0]),
            ),
            min_size=1,
            max_size=15,
        ),
        min_size=1,
        max_size=5,
    )
)
def test_reports_judged_together_get_the_verdicts_that_they_get_one_by_one(
    batches: list[list[tuple[bytes, int, int, float]]],
) -> None:
    alone, together = Admission(ROUNDS), Admission(ROUNDS)
    # Rounds that took a report are judged another way.
    for admission in (alone, together):
        admission.judge([report(0), report(1)], 10_980.0)
    for batch in batches:
        rows = np.array(
            [(list(digest), [0] * 16, number, symbol) for digest, number, symbol, _ in batch],
            dtype=WIDE_REPORT,
        )
        if not (rows["round"] > 127).any() and not (rows["symbol"] > 127).any():
            short = np.zeros(len(rows), dtype=SHORT_REPORT)
            for name in WIDE_REPORT.names or ():
                short[name] = rows[name]
            rows = short
        times_s = np.array([now_s for *_, now_s in batch])
        verdicts, which = together.judge_rows(rows, times_s)
        expected = [
            alone.judge([report(number, symbol, digest)], now_s)[0] for digest, number, symbol, now_s in batch
        ]
        assert [verdicts[place] for place in which.tolist()] == expected
        assert len(set(verdicts)) == len(verdicts)


def test_the_terms_of_a_survey_are_its_own() -> None:
    survey = Survey.parse(LABELS)
    terms = AdmissionRules.of(survey)
    assert terms == AdmissionRules(
        channel=survey.channel,
        start_s=START_S,
        round_s=86_400,
        rounds=3,
        lateness_s=3600,
        skew_s=300,
    )
    for number in range(terms.rounds):
        assert terms.start_s + number * terms.round_s == survey.round_start_s(number)


def test_two_surveys_of_one_name_and_version_are_refused() -> None:
    one, other = Survey.parse(LABELS), Survey.parse(LABELS.replace("rounds = 3", "rounds = 4"))
    assert list(index_surveys([one])) == [one.digest]
    for pair in ([one, one], [one, other]):
        with pytest.raises(CollectorError, match="self-rated-health version 1 twice"):
            index_surveys(pair)


def test_an_admission_that_has_judged_much_judges_like_a_new_one() -> None:
    # Rounds that took a report are at hand from then on: that changes no verdict, however the clock goes.
    reports = [report(n, symbol) for n in range(4) for symbol in (0, 3, 4)] + [report(digest=b"e" * 16)]
    admission = Admission({DIGEST: TERMS})
    edges = (
        9_969.9,
        9_970.0,
        10_500.0,
        11_000.0,
        11_100.0,
        11_100.1,
        10_969.9,
        10_500.0,
        13_100.1,
        50_000.0,
    )
    for now_s in edges * 2:
        assert admission.judge(reports, now_s) == [judge(one, now_s) for one in reports]


def test_a_round_that_took_reports_takes_none_when_its_survey_is_withdrawn() -> None:
    admission = Admission({DIGEST: TERMS})
    assert admission.judge([report()], 10_500.0) == [Verdict("accepted", (DIGEST, 0))]
    admission.withdraw([DIGEST])
    assert admission.judge([report()], 10_500.0) == [Verdict("unknown", None)]
