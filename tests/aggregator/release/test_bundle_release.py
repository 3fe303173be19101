"""A bundle from reports in a log to its release: tables, margins, the count of every part, forged ones."""

from __future__ import annotations

import json
from pathlib import Path

import duckdb
import numpy as np
import pytest
from bundles import bundle
from counting_logs import MINUTE, announcement, report_id

from hubbub.checking import check_release
from hubbub.estimation import AlertRules
from hubbub.survey.survey import Survey
from hubbub.testing import seeded
from hubbub.wire.counts import encode_counts
from hubbub.wire.record import ReportsRecord, SealRecord, Segment, encode_record
from hubbub_aggregator.counting.counting import apply_many
from hubbub_aggregator.counting.partition import PartitionState
from hubbub_aggregator.export import tidy_rows, write_parquet
from hubbub_aggregator.release.judgement import ReleaseJudge, shares_of
from hubbub_aggregator.release.parts import part_alerts
from hubbub_aggregator.release.round_release import Release, canonical_bytes, release
from hubbub_aggregator.release.views import round_views
from hubbub_aggregator.web.table_statistics import table_facts
from hubbub_lab.evaluation.evaluation import rows_of, truth_of

SIZES = {"age": 4, "sex": 2, "job": 3}
SURVEY = bundle(SIZES, epsilon=2.0)
TOGETHER = bundle({"age": 3, "sex": 3, "job": 3}, more='parts = "interactions"\n', name="together")
N = 4_000


def people(count: int) -> list[tuple[int, ...]]:
    random = np.random.default_rng(3)
    age = random.integers(0, 4, count)
    sex = (random.random(count) < 0.2 + 0.15 * age).astype(int)
    return list(zip(age.tolist(), sex.tolist(), random.integers(0, 3, count).tolist(), strict=True))


def released(
    survey: Survey, values: list[tuple[int, ...]], *, forged: int = 0, part: int = 0
) -> dict[str, object]:
    return json.loads(canonical_bytes(sealed(survey, values, forged=forged, part=part).document()))


def sealed(survey: Survey, values: list[tuple[int, ...]], *, forged: int = 0, part: int = 0) -> Release:
    inputs = np.array([survey.input_of(*each) for each in values])
    symbols = survey.channel.perturb(inputs, source=seeded(4))
    symbols[:forged] = symbols[np.flatnonzero(symbols[:, 0] == part)[-1]]
    states = {}
    for partition in range(2):
        own = symbols[partition::2]
        ids = b"".join(report_id(2 * i + partition) for i in range(len(own)))
        reports = Segment(survey.digest, 0, ids, own, len(own), {}, None)
        records = [
            announcement(survey),
            encode_record(ReportsRecord(MINUTE, (reports,), 0)),
            encode_record(SealRecord(survey.digest, 0)),
        ]
        states[partition] = PartitionState()
        states[partition].commit(apply_many(states[partition], enumerate(records)))
    found = release(survey, 0, states)
    assert found is not None
    return found


def test_a_release_holds_every_table_every_margin_and_the_reports_about_each_part():
    values = people(N)
    document = released(SURVEY, values)
    assert [cell["label"] for cell in document["values"]] == list(SURVEY.input_labels)
    assert document["values"][0]["label"] == "age: 0 / sex: 0"
    assert [cell["label"] for cell in document["categories"]] == list(SURVEY.category_names)
    assert sum(line["reports"] for line in document["parts"]) == document["devices"] == N
    assert [line["attributes"] for line in document["parts"]] == [
        [SURVEY.attributes[member].id for member in part.members] for part in SURVEY.channel.parts
    ]
    truth = truth_of(SURVEY, values)
    rows = rows_of(document, truth)
    assert len(rows) == len(SURVEY.input_labels) + len(SURVEY.category_names)
    wrong = [abs(row.estimate - row.truth) / row.error for row in rows if row.error]
    assert np.mean(np.array(wrong) < 1.96) > 0.8
    assert max(wrong) < 6.0
    assert document["poison_margin"]["values"][0] > 0
    views = round_views(document)
    assert views["empirical_bayes"]["values"] == []
    assert views["effective_sample_size"]["values"] is None
    assert table_facts(SURVEY)["tables"] == [[0, 1], [0, 2], [1, 2]]


def test_a_reader_checks_what_follows_from_the_counts_alone():
    made = sealed(SURVEY, people(N))
    document, counts = json.loads(canonical_bytes(made.document())), made.public_counts()
    assert counts is not None
    checked = check_release(SURVEY, document, encode_counts(counts))
    assert checked.differences == []
    document["parts"][0]["reports"] += 1
    assert [each.path for each in check_release(SURVEY, document, encode_counts(counts)).differences] == [
        "parts: reports"
    ]


def test_interactions_are_pooled_released_and_named():
    """4,000 devices: of 60 shares all are within 6 errors, and 4 of 5 within 1.96."""
    values = [(min(age, 2), sex, job) for age, sex, job in people(N)]
    made = sealed(TOGETHER, values)
    document, counts = json.loads(canonical_bytes(made.document())), made.public_counts()
    assert [line.get("tells") for line in document["parts"]] == [None] * 3 + ["interaction"] * 3
    wrong = [
        abs(row.estimate - row.truth) / row.error for row in rows_of(document, truth_of(TOGETHER, values))
    ]
    assert len(wrong) == 3 * 16 + 3 * 4 and max(wrong) < 6.0 and np.mean(np.array(wrong) < 1.96) > 0.8
    cells = np.array([cell["estimate"] for cell in document["values"]]).reshape(3, 4, 4)
    np.testing.assert_allclose(cells[0].sum(axis=0)[:3], cells[2].sum(axis=1)[:3], atol=1e-9)
    assert check_release(TOGETHER, document, encode_counts(counts)).differences == []
    forged = released(TOGETHER, values, forged=400, part=4)
    assert [alert["label"] for alert in part_alerts(forged)] == ["age / job, interaction"]
    del document["parts"][4]["tells"]
    found = check_release(TOGETHER, document, encode_counts(counts)).differences
    assert [each.path for each in found] == ["parts: tells"]


def test_a_suppressed_round_says_nothing_of_its_parts():
    document = released(SURVEY, people(40))
    assert document["suppressed"] and document["parts"] == [] and document["values"] == []


@pytest.mark.parametrize(("forged", "alerts"), [(0, []), (400, ["age / sex"])])
def test_parts_that_were_forged_raise_an_alert_and_nothing_else_is_judged(forged: int, alerts: list[str]):
    document = released(SURVEY, people(N), forged=forged)
    judge = ReleaseJudge(AlertRules())
    found = judge.judge(SURVEY, SURVEY.estimator(), document, None, rounds=[shares_of(SURVEY, document)])
    parts = [alert for alert in found["alerts"] if alert["kind"] == "part"]
    assert [alert["label"] for alert in parts] == alerts
    assert not found["judged"]


def test_its_table_is_the_same_in_parquet(tmp_path: Path):
    rows = list(tidy_rows([released(SURVEY, people(N))]))
    assert write_parquet(rows, tmp_path / "out.parquet") == len(rows)
    with duckdb.connect() as database:
        found = database.execute(
            "SELECT label, estimate FROM read_parquet(?) WHERE view = 'raw'", [str(tmp_path / "out.parquet")]
        ).fetchall()
    assert found == [(row["label"], row["estimate"]) for row in rows if row["view"] == "raw"]
    assert [label for label, _ in found] == [*SURVEY.input_labels, *SURVEY.category_names]


def test_a_bundle_of_10_8_combinations_is_released():
    sizes = {f"a{i}": size for i, size in enumerate((9, 7, 16, 7, 14, 5, 2, 5, 2, 2))}
    survey = bundle(sizes)
    random = np.random.default_rng(1)
    values = list(zip(*(random.integers(0, size, 2_000).tolist() for size in sizes.values()), strict=True))
    document = released(survey, values)
    assert len(document["values"]) == 2_700 and len(document["parts"]) == 45
