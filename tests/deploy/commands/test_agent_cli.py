"""`hubbub agent`: the owner sees what was asked, sent and learned, and has the last word."""

import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import urllib3
from devices import Collector
from surveys import LABELS, VISITS

from hubbub.survey.survey import Survey
from hubbub.wire import report as wire
from hubbub_client import Agent
from hubbub_client.owner_page import descriptions
from hubbub_client.upload.transport import Response
from hubbub_deploy.cli import main

LONG = LABELS.replace("rounds = 3", "rounds = 3000").replace("epsilon = 1.0", "epsilon = 0.001")
HEALTH = Survey.parse(LONG)
VISITS_SURVEY = Survey.parse(VISITS.replace("rounds = 2", "rounds = 3000"))


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Collector:
    found = Collector()
    found.surveys = Response(200, wire.encode_surveys([HEALTH.canonical, VISITS_SURVEY.canonical]))
    monkeypatch.setattr("hubbub_client.agent.agent.HttpTransport", lambda _url, **_: found)
    return found


@pytest.fixture
def hubbub(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    def run(verb: str, *more: str) -> tuple[int, str, str]:
        code = main(["agent", verb, "--ledger", str(tmp_path / "ledger.db"), *more])
        out, err = capsys.readouterr()
        return code, out, err

    return run


ANSWER = ("--collector", "http://c.invalid", "--budget", "9", "--set", "visits=3", "--set", "health=good")


def test_nothing_is_answered_before_the_owner_joins(hubbub, collector) -> None:
    code, out, _ = hubbub("answer", *ANSWER)
    assert code == 0 and out.count("refused: not_opted_in") == 2
    assert collector.bodies == []


def test_a_survey_joined_is_answered_and_its_bytes_are_shown_after_sending(hubbub, collector) -> None:
    _, out, _ = hubbub("answer", *ANSWER, "--join", VISITS_SURVEY.id, "--json")
    result = json.loads(out)
    assert [s["status"] for s in result["surveys"]] == ["refused", "enrolled"]
    assert list(result["settled"].values()) == ["accepted"]
    _, out, _ = hubbub("sent", "--json")
    (report,) = json.loads(out)["sent"]
    assert bytes.fromhex(report["bytes"]) in collector.bodies[0]
    assert hubbub("answer", *ANSWER)[1].count("already enrolled") == 1


def test_a_value_need_not_stand_in_the_process_list(hubbub, collector, tmp_path, monkeypatch) -> None:
    """`--set-from` reads what `--set` would show to every process of the machine: a file, or stdin."""
    bare = ("--collector", "http://c.invalid", "--budget", "9")
    said = hubbub("answer", *ANSWER)[2]
    assert "--set shows the value to every process of this machine" in said and "--set-from" in said
    file = tmp_path / "values"
    file.write_text("visits=3\n\nhealth=good = so\n", encoding="utf-8")
    code, out, said = hubbub("answer", *bare, "--set-from", str(file), "--join", VISITS_SURVEY.id)
    assert code == 0 and "answered" in out
    outside = "hubbub: what was set for health is no value of its domain: it is answered as missing\n"
    assert said == outside  # "good = so" is no label
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"visits=4\n")))
    code, _, said = hubbub("answer", *bare, "--set-from", "-")
    assert code == 1 and "pinned" in said  # by the 3 of before: both were read


@pytest.mark.parametrize("text", ["visits3", "=3", "secret=3", "visits=3\n" * 1000])
def test_a_file_of_values_that_cannot_be_read_shows_none_of_it(hubbub, collector, tmp_path, text) -> None:
    file = tmp_path / "values"
    bare = ("--collector", "http://c.invalid", "--budget", "9")
    code, _, said = hubbub("answer", *bare, "--set-from", str(tmp_path / "nowhere"))
    assert code == 1 and "cannot be read" in said
    file.write_bytes(text.encode() + b"\xff")
    code, _, said = hubbub("answer", *bare, "--set-from", str(file))
    assert code == 1 and "must be UTF-8" in said and "3" not in said.replace(str(file), "")
    file.write_text(text, encoding="utf-8")
    code, _, said = hubbub("answer", *bare, "--set-from", str(file))
    assert code == (0 if text.startswith("visits=") else 1)
    assert "visits3" not in said and "=3" not in said


def test_an_attribute_has_one_value(hubbub, collector) -> None:
    code, out, said = hubbub("answer", *ANSWER, "--set", "visits=1357")
    assert (code, out) == (1, "")
    assert "--set must name an attribute once, got 'visits' with two values" in said and "1357" not in said


def test_nothing_is_shown_before_it_was_sent(hubbub, collector) -> None:
    collector.reply = lambda _: None
    hubbub("answer", *ANSWER, "--join", VISITS_SURVEY.id)
    assert json.loads(hubbub("sent", "--json")[1]) == {"sent": [], "waiting": 1}
    assert "1 more wait" in hubbub("sent")[1]


def test_status_says_in_words_what_can_have_been_learned(hubbub, collector) -> None:
    hubbub("answer", *ANSWER, "--join", VISITS_SURVEY.id, "--join", HEALTH.id)
    facts = json.loads(hubbub("status", "--json")[1])
    assert facts["budget"] == 9.0 and facts["waiting"] == 0
    assert [s["id"] for s in facts["surveys"]] == [HEALTH.id, VISITS_SURVEY.id]
    assert sum(s["loss"] for s in facts["surveys"]) == pytest.approx(facts["loss"], abs=1e-9)
    assert facts["loss"] + facts["reserved"] + facts["left"] == pytest.approx(9.0)
    out = hubbub("status")[1]
    assert "by a factor of at most" in out and "visits, a number from 0 to 20" in out


def test_no_value_is_printed(hubbub, collector) -> None:
    told = hubbub("answer", *ANSWER, "--join", HEALTH.id)[1] + hubbub("status")[1]
    assert "good" not in told
    # What is printed of an answer follows from the bytes that were sent, whatever the value was.
    (row,) = json.loads(hubbub("sent", "--json")[1])["sent"]
    symbol = wire.decode_report(bytes.fromhex(row["bytes"])).symbol
    assert row["says"] == descriptions.symbol(HEALTH, symbol)
    assert "".join(hubbub("sent")[1].split()) == "".join(
        f"{HEALTH.id} round {row['round']}: accepted bytes {row['bytes']} survey {HEALTH.digest.hex()} "
        f"report {row['report']} says {row['says']}".split()
    )
    code, _, err = hubbub("answer", "--collector", "http://c.invalid", "--set", "secret77")
    assert code == 1 and "secret77" not in err


def test_pause_resume_and_forget(hubbub, collector) -> None:
    hubbub("answer", *ANSWER, "--join", VISITS_SURVEY.id)
    hubbub("pause")
    assert "Paused" in hubbub("status")[1]
    assert "paused" in hubbub("answer", *ANSWER)[1]
    hubbub("resume")
    before = json.loads(hubbub("status", "--json")[1])
    code, _, err = hubbub("forget")
    assert code == 1 and "--yes" in err
    assert hubbub("forget", "--yes")[0] == 0
    after = json.loads(hubbub("status", "--json")[1])
    assert (after["loss"], after["left"]) == (before["loss"], before["left"])
    assert json.loads(hubbub("sent", "--json")[1])["sent"] == []


def test_a_survey_is_left_and_joined_again(hubbub, collector) -> None:
    collector.reply = lambda _: None
    hubbub("answer", *ANSWER, "--join", VISITS_SURVEY.id)
    before = json.loads(hubbub("status", "--json")[1])
    assert (before["waiting"], before["surveys"][0]["state"]) == (1, "active")
    assert hubbub("leave", VISITS_SURVEY.id)[0] == 0
    left = json.loads(hubbub("status", "--json")[1])
    assert (left["waiting"], left["surveys"][0]["state"]) == (0, "left")
    assert left["left"] == before["left"]
    assert "opted_out" in hubbub("answer", *ANSWER)[1]
    assert hubbub("join", VISITS_SURVEY.digest.hex())[0] == 0
    again = json.loads(hubbub("status", "--json")[1])
    assert (again["left"], again["surveys"][0]["state"]) == (before["left"], "active")
    assert "answered" not in hubbub("answer", *ANSWER)[1].replace("enrolled", "")  # the round is over for it
    for verb in ("join", "leave"):
        code, _, err = hubbub(verb, HEALTH.id)
        assert code == 1 and repr(HEALTH.id) in err


def test_joining_without_a_value_is_said_aloud(hubbub, collector) -> None:
    hubbub("answer", *ANSWER)
    bare = ("--collector", "http://c.invalid", "--join", VISITS_SURVEY.id)
    assert "answered as missing" in hubbub("answer", *bare)[2]


def test_after_forget_no_survey_claims_that_nothing_was_learned(hubbub, collector) -> None:
    hubbub("answer", *ANSWER, "--join", VISITS_SURVEY.id)
    hubbub("forget", "--yes")
    out = hubbub("status")[1]
    assert "as far as is remembered" in out and "by a factor of at most" in out
    assert "nobody has learned" not in out


def test_what_is_not_there_is_an_error_in_one_line(hubbub, collector) -> None:
    code, _, err = hubbub("status")
    assert code == 1 and "does not exist" in err and err.count("\n") == 1
    code, _, err = hubbub("answer", *ANSWER, "--join", "nothing")
    assert code == 1 and "'nothing'" in err


def test_a_loss_in_words() -> None:
    assert descriptions.learned(0.0, "From it") == "From it, nobody has learned anything."
    assert descriptions.learned(1.0, "From it").endswith("by a factor of at most 2.72.")


def test_the_page_is_served_from_the_command_line_and_holds_no_ledger(hubbub, collector, tmp_path) -> None:
    hubbub("answer", *ANSWER, "--join", VISITS_SURVEY.id)
    command = [sys.executable, "-m", "hubbub_deploy.cli", "agent", "page", "--ledger", tmp_path / "ledger.db"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, env=environment, **pipes) as page:
        try:
            url = page.stdout.readline().decode().strip()
            assert url.startswith("http://127.0.0.1:")
            assert b"The exact bytes (1)" in urllib3.request("GET", url).data
            assert hubbub("pause")[0] == 0
            assert b"Paused" in urllib3.request("GET", url).data
        finally:
            page.terminate()


def test_a_ledger_that_the_app_holds_is_an_error_that_says_where_to_look(hubbub, tmp_path) -> None:
    with Agent(tmp_path / "ledger.db", "", budget=1.0, http=Collector()):
        for verb in ("page", "status"):
            code, _, err = hubbub(verb)
            assert code == 1 and "one process at a time" in err and "Agent.serve_page" in err


def test_an_answer_says_when_the_first_round_is_and_counts_rounds_from_one(hubbub, collector) -> None:
    later = Survey.parse(LABELS.replace("2026-01-01", "2090-01-01").replace("version = 1", "version = 2"))
    collector.surveys = Response(200, wire.encode_surveys([later.canonical]))
    _, out, _ = hubbub("answer", *ANSWER[:4], "--set", "health=good", "--join", later.id)
    assert re.search(rf"{later.id} version 2: enrolled; begins in [\d,]+ d\n", out)
    assert "answered" not in out
    collector.surveys = Response(200, wire.encode_surveys([VISITS_SURVEY.canonical]))
    _, out, _ = hubbub("answer", *ANSWER[:4], "--set", "visits=3", "--join", VISITS_SURVEY.id)
    said = rf"enrolled; round ([\d,]+) of 3,000 ends in .*\nanswered {VISITS_SURVEY.id}, round \1\n"
    (number,) = re.findall(said, out)
    _, out, _ = hubbub("sent")
    assert f"{VISITS_SURVEY.id} round {number}: accepted" in out
    _, out, _ = hubbub("sent", "--json")
    assert json.loads(out)["sent"][0]["round"] == int(number.replace(",", ""))


@pytest.mark.parametrize(
    ("text", "said"), [("21", True), ("three", True), ("-1", True), ("20", False), ("", False)]
)
def test_a_value_that_is_none_of_the_domain_is_said_and_not_shown(hubbub, collector, text, said) -> None:
    _, out, err = hubbub("answer", *ANSWER[:4], "--set", f"visits={text}", "--join", VISITS_SURVEY.id)
    assert ("what was set for visits is no value of its domain: it is answered as missing" in err) == said
    assert f"={text}" not in out + err or not text
