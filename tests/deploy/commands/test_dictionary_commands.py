"""Commands that take a dictionary: texts are looked up in the file whose digest a survey names."""

from __future__ import annotations

import csv
import hashlib
import json
import random
import re
from collections import Counter
from pathlib import Path

import pytest
from devices import Collector
from surveys import LABELS

from hubbub import Survey
from hubbub.survey import dictionary_of
from hubbub.wire.report import decode_upload, encode_surveys
from hubbub_client.upload.transport import Response
from hubbub_deploy.cli import main

TEXTS = ["mail", "maps", "music", "café", "news", "chess", "NA"]
DATA, _ = dictionary_of(TEXTS)
# The places by another way: the texts of the survey in the order of their hashes' digits.
PLACES = sorted(TEXTS, key=lambda text: hashlib.sha256(text.encode()).hexdigest())
SURVEY = (
    LABELS.replace(
        'type = "label"\nlabels = ["excellent", "good", "fair", "poor"]',
        f'type = "dictionary"\ntexts = 7\ndigest = "{hashlib.sha256(DATA).hexdigest()}"',
    )
    .replace('id = "health"', 'id = "site"')
    .replace('"grr"', '"local_hashing"')
    .replace("epsilon = 1.0", "epsilon = 20.0")
    .replace("evolving", "static")
)
FIELDS = ["mail"] * 40 + ["cafe\u0301"] * 25 + ["NA"] * 20 + ["?"] * 10 + ["elsewhere"] * 5
TRUTH = Counter({"mail": 40, "café": 25, "NA": 20, "missing": 15})


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("d.bin").write_bytes(DATA)
    Path("other.bin").write_bytes(dictionary_of([*TEXTS[:-1], "sudoku"])[0])
    Path("cut.bin").write_bytes(DATA[:-1])
    Path("site.toml").write_text(SURVEY, encoding="utf-8")
    random.Random(1).shuffle(fields := list(FIELDS))  # noqa: S311 - an order
    with Path("people.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([["site"], *([text] for text in fields)])
    return tmp_path


def names(label: str) -> str:
    return PLACES[int(label[1:]) - 1] if label.startswith("#") else label


def test_a_replay_counts_the_texts_of_a_csv(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """At epsilon 20 a report lies with a chance below 7 / e^20: with the seed none does."""
    words = ["replay", "people.csv", "--survey", "site.toml", "--dictionary", "d.bin", "--seed", "1"]
    assert main([*words, "--json", "--all"]) == 0
    said = capsys.readouterr()
    (found,) = json.loads(said.out)
    rows = {names(row["label"]): row for row in found["rows"] if row["kind"] == "value"}
    assert {text: row["truth"] for text, row in rows.items()} == {
        text: TRUTH[text] / 100 for text in [*TEXTS, "missing"]
    }
    assert all(row["estimate"] == pytest.approx(row["truth"], abs=1e-6) for row in rows.values())
    assert "10 of 100 are missing (?), 5 are outside the domain (such as 'elsewhere')" in said.err


def test_an_evaluation_of_texts_is_that_of_labels_in_their_order(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    labels = re.sub(
        r'type = "dict.*\n.*\n.*',
        f'type = "label"\nlabels = {json.dumps(PLACES, ensure_ascii=False)}',
        SURVEY,
    )
    Path("labels.toml").write_text(labels, encoding="utf-8")
    words = ["--data", "people.csv:site", "--mechanisms", "own,subset", "--seed", "1", "--epsilon", "1"]
    found = []
    for question in (["site.toml", "--dictionary", "d.bin"], ["labels.toml"]):
        assert main(["evaluate", *question, *words, "--json", "-"]) == 0
        cases = json.loads(capsys.readouterr().out)["cases"]
        shifted = [names(case["figures"]["value"].pop("shifted")) for case in cases]
        found.append((shifted, [(case["compiled"], case["figures"], case["verdicts"]) for case in cases]))
    assert found[0] == found[1] and len(found[0][1]) == 2
    assert main(["evaluate", "site.toml", "--data", "zipf"]) == 1
    assert "site must have a file of --data" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("given", "rule"),
    [
        ((), "--dictionary must give that of attribute 'site', whose digest is "),
        (("other.bin",), "other.bin: its digest must be one that a survey names ("),
        (("cut.bin",), "cut.bin: must be a dictionary: "),
        (("nowhere.bin",), "dictionary nowhere.bin"),
        (("d.bin", "other.bin"), "other.bin: its digest must be"),
    ],
    ids=str,
)
def test_another_file_or_none_is_one_sentence(
    folder: Path, capsys: pytest.CaptureFixture[str], given: tuple[str, ...], rule: str
) -> None:
    options = [word for name in given for word in ("--dictionary", name)]
    for command in (
        ["replay", "people.csv", "--survey", "site.toml"],
        ["evaluate", "site.toml", "--data", "people.csv:site"],
    ):
        assert main([*command, *options]) == 1
        said = capsys.readouterr().err
        assert rule in said and len(said.strip().splitlines()) == 1


def test_a_device_answers_by_the_file_that_it_is_given(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    survey = Survey.parse(SURVEY.replace("rounds = 3", "rounds = 3000"))
    collector = Collector()
    collector.surveys = Response(200, encode_surveys([survey.canonical]))
    monkeypatch.setattr("hubbub_client.agent.agent.HttpTransport", lambda _url, **_: collector)
    words = ["agent", "answer", "--ledger", "l.db", "--collector", "http://c.invalid", "--budget", "99"]
    words += ["--join", survey.id]
    values = ["--set", "site=cafe\u0301"]
    other = ["--dictionary", "other.bin"]
    for given, rule in (([], "--dictionary must give"), (other, "its digest must be")):
        assert main([*words, *values, *given]) == 1
        said = capsys.readouterr().err.splitlines()[-1]
        assert rule in said and "caf" not in said
    assert collector.bodies == []
    assert main([*words, *values, "--dictionary", "d.bin"]) == 0
    (report,) = decode_upload(collector.bodies[0], max_reports=1)
    # At epsilon 20 the bucket is the true one but with a chance below 7 / e^20.
    seed, bucket = divmod(report.symbol, survey.channel.pool.buckets)
    assert survey.channel.pool.bucket(seed, PLACES.index("café")) == bucket
    capsys.readouterr()
    assert main([*words, "--json"]) == 0  # a later day needs no file: the answer is memoised
    assert json.loads(capsys.readouterr().out)["surveys"][0]["status"] == "already_enrolled"


def test_a_rehearsal_takes_a_text(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["survey", "rehearse", "site.toml", "--budget", "30"]
    assert main([*words, "--value", "site=mail"]) == 1
    assert "--dictionary must give" in capsys.readouterr().err
    assert main([*words, "--value", "site=nothing", "--dictionary", "d.bin"]) == 1
    assert "must be a text of its dictionary" in capsys.readouterr().err
    assert main([*words, "--value", "site=mail", "--dictionary", "d.bin"]) == 0
    assert "enrolled" in capsys.readouterr().out
