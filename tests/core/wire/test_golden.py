"""Stored bytes: what older devices send and what older logs hold must read as the same values for good.

Nothing here writes a golden file; tests/golden/README.md says how they came to be.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from hubbub import Survey
from hubbub.mechanisms.registry import KINDS
from hubbub.survey import canonical
from hubbub.wire.record import (
    NO_ROUND,
    ReportsRecord,
    SealRecord,
    Segment,
    SurveyRecord,
    decode_record,
    encode_record,
)
from hubbub.wire.report import (
    OUTCOMES,
    Report,
    decode_report,
    decode_response,
    decode_surveys,
    decode_upload,
    encode_report,
    encode_response,
    encode_surveys,
    encode_upload,
)

GOLDEN = Path(__file__).parents[2] / "golden"
# In test_survey_list.py, tests/core/survey/test_bundle.py and tests/compat.
ELSEWHERE = (
    "bundle.bin",
    "bundle.toml",
    "interactions.bin",
    "interactions.toml",
    "survey-list.bin",
    "formats",
    "form-releases.txt",
    "sets.bin",
    "dictionary.bin",
    "key-value.bin",
    "sets.toml",
    "key-value.toml",
)
DIGEST = bytes.fromhex("000102030405060708090a0b0c0d0e0f")
OTHER = bytes.fromhex("f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff")
IDS = [bytes([16 * i + j for j in range(16)]) for i in range(1, 5)]
SMALL = Report(DIGEST, 3, IDS[0], 90)
LARGE = Report(OTHER, 70_000, IDS[1], 300)
SET = Report(DIGEST, 3, IDS[0], bytes.fromhex("8801"))
WIDE = Report(OTHER, 70_000, IDS[1], bytes(range(1, 256)) + b"\x00\x01")
LABELS = (GOLDEN / "survey-labels.bin").read_bytes()
BATCH = ReportsRecord(
    29_453_760,
    (
        Segment(DIGEST, 3, IDS[0] + IDS[1], np.array([90, 0], dtype=np.uint8), 5, {"early": 1, "late": 2}),
        Segment(OTHER, 70_000, IDS[2], np.array([300], dtype=np.uint16), 2, {"over_quota": 1}),
        Segment(OTHER, 70_001, IDS[3], np.array([70_000], dtype=np.uint32), 1, {}),
        Segment(OTHER, NO_ROUND, b"", np.array([], dtype=np.uint8), 4, {"invalid": 4}),
    ),
    7,
)
SETS = ReportsRecord(
    29_453_761,
    (
        Segment(
            DIGEST,
            3,
            IDS[0] + IDS[1],
            np.array([[0x88, 0x01], [0x80, 0x03]], dtype=np.uint8),
            3,
            {"early": 1},
        ),
        Segment(OTHER, 0, IDS[2], np.frombuffer(WIDE.symbol, dtype=np.uint8).reshape(1, 257), 1, {}),
    ),
    0,
)

MESSAGES = {
    "report.bin": (SMALL, encode_report, decode_report),
    "report-large.bin": (LARGE, encode_report, decode_report),
    "report-set.bin": (SET, encode_report, decode_report),
    "report-set-large.bin": (WIDE, encode_report, decode_report),
    "upload.bin": (
        [SMALL, LARGE],
        lambda reports: encode_upload([encode_report(report) for report in reports]),
        lambda data: decode_upload(data, max_reports=2),
    ),
    "response.bin": (list(OUTCOMES), encode_response, decode_response),
    "surveys.bin": ([LABELS], encode_surveys, decode_surveys),
    "record-survey.bin": (SurveyRecord(LABELS), encode_record, decode_record),
    "record-seal.bin": (SealRecord(DIGEST, 3), encode_record, decode_record),
    "record-reports.bin": (BATCH, encode_record, decode_record),
    "record-sets.bin": (SETS, encode_record, decode_record),
}
SURVEYS = sorted(path.stem.removeprefix("survey-") for path in GOLDEN.glob("survey-*.toml"))
SEARCHED = ("curve", "orbits", "short-orbits", "weighted")
"""Channels that a search in floats finds, which another library may end a little beside."""
DIGESTS = dict(line.split()[::-1] for line in (GOLDEN / "digests.txt").read_text().splitlines())


@pytest.mark.parametrize("name", MESSAGES)
def test_stored_message_reads_as_its_value_and_is_written_the_same(name):
    value, encode, decode = MESSAGES[name]
    stored = (GOLDEN / name).read_bytes()
    assert decode(stored) == value
    assert encode(value) == stored


@pytest.mark.parametrize("name", [name for name in SURVEYS if name not in ("diseases", *SEARCHED)])
def test_stored_survey_file_compiles_to_the_stored_bytes(name):
    survey = Survey.load(GOLDEN / f"survey-{name}.toml")
    stored = (GOLDEN / f"survey-{name}.bin").read_bytes()
    assert survey.canonical == stored
    assert Survey.from_canonical(stored) == survey


def test_stored_boosted_survey_compiles_to_the_stored_channel_within_one_unit():
    """Its rows come from exponentials in floats, which another processor or library may round otherwise.

    So bytes and digest may differ there, and nothing else may: compile once, and ship the bytes. The file
    states every parameter, so that no search is part of this.
    """
    survey = Survey.load(GOLDEN / "survey-diseases.toml")
    stored = Survey.from_canonical((GOLDEN / "survey-diseases.bin").read_bytes())
    ours, theirs = canonical.decode(survey.canonical), canonical.decode(stored.canonical)
    for key in ours.keys() - {"channel", "form"}:
        assert ours[key] == theirs[key], key
    mine, stored_form = survey.form, stored.form
    assert (mine.attributes, mine.category_names, mine.mapping, stored_form.mapping) == (
        stored_form.attributes,
        stored_form.category_names,
        None,
        None,
    )
    assert np.array_equal(mine.category_of, stored_form.category_of)
    assert survey.channel.total == stored.channel.total == 2**32
    assert np.abs(survey.channel.weights() - stored.channel.weights()).max() <= 1


@pytest.mark.parametrize("name", SEARCHED)
def test_stored_survey_of_a_search_compiles_to_a_channel_of_its_errors(name):
    """So bytes and digest may differ, and nothing that anybody notices may: compile once, ship the bytes."""
    survey = Survey.load(GOLDEN / f"survey-{name}.toml")
    stored = Survey.from_canonical((GOLDEN / f"survey-{name}.bin").read_bytes())
    assert stored.channel.kind == survey.channel.kind == name.replace("-", "_")
    ours, theirs = canonical.decode(survey.canonical), canonical.decode(stored.canonical)
    for key in ours.keys() - {"channel", "form"}:
        assert ours[key] == theirs[key], key
    assert survey.form.to_spec() == stored.form.to_spec()
    inputs = stored.channel.inputs
    crowd = np.full(inputs, 1.0 / inputs)
    mine, known = (each.estimator().expected_estimate(crowd, 1000) for each in (survey, stored))
    assert mine.value_errors == pytest.approx(known.value_errors, rel=1e-3)
    assert mine.category_errors == pytest.approx(known.category_errors, rel=1e-3)
    assert 0.999 * survey.epsilon < stored.channel.epsilon <= survey.epsilon


@pytest.mark.parametrize("name", SURVEYS)
def test_stored_survey_is_read_and_written_the_same(name):
    stored = (GOLDEN / f"survey-{name}.bin").read_bytes()
    assert Survey.from_canonical(stored).canonical == stored


def test_every_kind_of_channel_has_a_stored_survey():
    files = [*(f"survey-{name}.bin" for name in SURVEYS), "sets.bin", "bundle.bin", "key-value.bin"]
    files.append("interactions.bin")
    surveys = [Survey.from_canonical((GOLDEN / name).read_bytes()) for name in files]
    assert {survey.channel.kind for survey in surveys} == set(KINDS)


@pytest.mark.parametrize("name", DIGESTS)
def test_stored_digest_is_that_of_the_stored_survey(name):
    assert Survey.from_canonical((GOLDEN / f"survey-{name}.bin").read_bytes()).digest.hex() == DIGESTS[name]


def test_every_golden_file_is_tested():
    named = {*MESSAGES, "digests.txt", "README.md", "tokens.json", *ELSEWHERE}
    named |= {f"survey-{name}.{end}" for name in SURVEYS for end in ("toml", "bin")}
    assert {path.name for path in GOLDEN.iterdir()} == named
