"""`hubbub survey new`, `keygen`, `sign`: files that compile, a key of its owner's, lists that count on."""

from __future__ import annotations

import io
import json
import math
import re
import stat
import time
from pathlib import Path

import pytest
from surveys import LABELS, VISITS

from hubbub import Survey
from hubbub.survey.signed_list import open_signed, public_key
from hubbub_deploy.cli import main
from hubbub_deploy.commands.survey.design import SurveyDesign


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "labels.toml").write_text(LABELS, encoding="utf-8")
    (tmp_path / "visits.toml").write_text(VISITS, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["survey", *arguments]) == 0
    return capsys.readouterr().out.strip()


def fails(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["survey", *arguments]) == 1
    return capsys.readouterr().err


AGE_BY_SEX = ["--attribute", "age=18..99", "--attribute", "sex=f,m"]
NEW = ("new", "--id", "drinks", "--epsilon", "1.5", "--rounds", "3", "--out")


@pytest.mark.parametrize(
    ("domain", "size"),
    [
        (["--labels", "tea", 'a "strong" coffee', "none"], 4),
        (["--labels", "tea,coffee, none"], 4),
        (["--labels", "tea, hot", "none"], 3),
        (["--attribute", "cup=tea,coffee"], 3),
        (["--integer", "0", "12"], 14),
        (["--attribute", "cups=-3..12"], 17),
        (["--integer", "0", "12", "--category", "none=0", "--category", "some=1..12"], 14),
        (["--labels", "tea,coffee,none", "--category", "hot=tea,coffee", "--category", "no=none"], 4),
        (["--number", "-1.5", "40"], 34),
        (AGE_BY_SEX, 83 * 3),
        (
            [*AGE_BY_SEX, "--category", "age:young=18..39", "--category", "age:old=40..99"],
            9,
        ),
    ],
)
def test_a_new_survey_compiles_as_it_is(files: Path, capsys, domain, size) -> None:
    out = str(files / "new.toml")
    said = run(capsys, *NEW, out, *domain)
    assert "begins in" in said
    survey = Survey.load(out)
    assert (survey.id, survey.epsilon, survey.rounds, survey.channel.inputs) == ("drinks", 1.5, 3, size)
    assert survey.start_s % 86_400 == 0
    text = (files / "new.toml").read_text(encoding="utf-8")
    assert "# " in text
    suggested = len(survey.attributes) == 1 and survey.grid_points is None  # a number has no categories
    assert ("[[category]]" in text) == suggested
    assert "not overwritten" in fails(capsys, *NEW, out, *domain)
    assert (files / "new.toml").read_text(encoding="utf-8") == text


@pytest.mark.parametrize("domain", [["--number", "0", "24"], ["--attribute", "hours=0.0..24"]])
def test_a_new_survey_of_a_number_asks_for_its_curve(files: Path, capsys, domain) -> None:
    run(capsys, *NEW, "new.toml", *domain)
    survey = Survey.load("new.toml")
    assert survey.channel.shows_curve
    assert survey.choice.objective == "quantiles"
    run(capsys, *NEW, "whole.toml", "--integer", "0", "12")
    assert not Survey.load("whole.toml").channel.shows_curve


def test_check_says_by_how_many_bits_a_memoised_answer_is_a_name(files, capsys) -> None:
    facts = json.loads(run(capsys, "check", "--json", "visits.toml"))
    assert (facts["kind"], facts["memoised_bits"]) == ("static", round(math.log2(facts["outputs"]), 1))
    assert facts["bits_of_devices"] == round(math.log2(Survey.parse(VISITS).planned_devices), 1)
    assert "memoised_bits" not in json.loads(run(capsys, "check", "--json", "labels.toml"))


@pytest.mark.parametrize("domain", [["--labels", "tea,coffee"], ["--integer", "0", "90"]])
def test_a_new_survey_releases_where_its_intervals_hold_unless_told_otherwise(files, capsys, domain) -> None:
    out = str(files / "new.toml")
    run(capsys, *NEW, out, *domain)
    said = run(capsys, "check", out)
    cohorts = {line.split()[0]: line.split()[1] for line in said.splitlines() if "_cohort" in line.split()[0]}
    assert cohorts["minimum_cohort"] == cohorts["least_cohort"]
    run(capsys, *NEW, str(files / "told.toml"), *domain, "--minimum-cohort", "777")
    assert Survey.load(files / "told.toml").minimum_cohort == 777


def test_check_reckons_with_the_devices_of_a_round(files: Path, capsys) -> None:
    """1,188 planned in turns of 12 are 99 a round: below the cohort of 100."""
    for devices, rotation, code in ((1188, 12, 1), (1200, 12, 0), (1188, 1, 0), (99, 1, 1), (1188, 120, 1)):
        turns = "" if rotation == 1 else f"\nrotation = {rotation}"
        text = LABELS.replace("rounds = 3", f"rounds = 30{turns}").replace("5000", str(devices))
        (files / "panel.toml").write_text(text)
        assert main(["survey", "check", str(files / "panel.toml"), "--json"]) == code
        said = capsys.readouterr()
        facts = json.loads(said.out)
        assert (facts.get("rotation", 1), facts.get("answers", 30)) == (rotation, -(-30 // rotation))
        assert ("no round would be shown" in said.err) == bool(code)
        assert ("small_plan" in facts) == (devices // rotation < facts["least_cohort"])
    assert facts["small_plan"].endswith(", and 9 answer in a round, of 1,188 planned, one in 120 each")


def test_a_survey_is_read_from_stdin(files: Path, capsys, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO((files / "labels.toml").read_bytes())))
    assert run(capsys, "check", "-") == run(capsys, "check", "labels.toml")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"\xff")))
    assert fails(capsys, "check", "-") == "hubbub: stdin must be TOML in UTF-8, got invalid start byte\n"


def test_the_points_of_a_designs_numbers_stand_in_line(files: Path, capsys) -> None:
    said = run(capsys, "design", "visits.toml")
    table = [line for line in said.splitlines() if re.match(r"[* ]  \w+.* \d", line)]
    assert len(table) > 5
    ends = {line.index("(") if "(" in line else 0 for line in table}
    assert len(ends) > 1  # their words differ in length
    column = said.splitlines()[2].index("±value")
    values = [re.match(r"\s*(\d+)(\.\d+)?", line[column - 4 :]) for line in table]
    points = {found.end(1) for found in values if found is not None}
    assert len(points) == 1 and len([found for found in values if found]) > 5


def test_categories_of_a_draft_are_those_that_were_named(files: Path, capsys) -> None:
    run(capsys, *NEW, "new.toml", "--integer", "0", "12", "--category", "none=0", "--category", "some=1..12")
    assert Survey.load("new.toml").category_names == ("none", "some", "missing")


@pytest.mark.parametrize(
    ("round_", "lateness_s", "skew_s"), [("2m", 30, 30), ("90s", 23, 23), ("1d", 3600, 300)]
)
def test_a_survey_that_starts_now_is_open_and_sealed_soon_after_its_rounds(
    files: Path, capsys, round_, lateness_s, skew_s
) -> None:
    before_s = time.time()
    said = run(capsys, *NEW, "new.toml", "--labels", "a,b", "--start", "now", "--round", round_)
    survey = Survey.load("new.toml")
    assert int(before_s) <= survey.start_s <= time.time()
    assert "round 1 of 3 ends in" in said
    assert (survey.lateness_s, survey.skew_s) == (lateness_s, skew_s)


def test_a_survey_may_start_at_a_time_and_be_written_to_stdout(files: Path, capsys) -> None:
    text = run(capsys, *NEW, "-", "--labels", "a,b", "--start", "2030-01-01T02:00:00+02:00")
    assert Survey.parse(text).start_s == 1_893_456_000
    assert not (files / "-").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "one of --integer, --number, --labels or --attribute ID=VALUES is required"),
        (["--attribute", "x"], "one of --integer, --number, --labels or --attribute ID=VALUES is required"),
        (["--attribute", "x=a,b", "--labels", "a,b"], "one of --integer, --number, --labels or"),
        (
            ["--attribute", "x=a,b", "--attribute", "y"],
            "--attribute must be ID=VALUES where",
        ),
        (["--labels", "a,b", "--start", "soon"], "--start: must be now, midnight or a time such as"),
        (["--labels", "a,b", "--start", "2030-01-01T00:00:00"], "with Z or an offset"),
        (["--labels", "a,b", "--round", "2 minutes"], "--round: must be a duration such as 90s"),
        (["--labels", "a,b", "--round", "0s"], "--round: must be a duration such as 90s"),
        (["--labels", "a,b", "--minimum-cohort", "0"], "--minimum-cohort: must be an integer of at least 1"),
        (["--labels", "a,b", "--devices", "-5"], "--devices: must be an integer of at least 1, got '-5'"),
    ],
)
def test_misuse_of_new_is_said(files: Path, capsys, arguments, said) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["survey", *NEW, "new.toml", *arguments])
    assert ended.value.code == 2
    assert said in capsys.readouterr().err
    assert not (files / "new.toml").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--labels", "a,b", "--category", "hot"], "--category must be NAME=VALUES, got 'hot'"),
        (["--integer", "0", "9", "--category", "low=a"], "--category must name integers as LOW..HIGH"),
        (["--number", "0", "9", "--category", "low=0..1"], "--category must be absent for a number"),
        (
            ["--attribute", "x=a,b", "--attribute", "y=0..3", "--category", "low=0"],
            "--category must be ID:NAME=VALUES, ID one of x, y, got 'low=0'",
        ),
        (["--labels", "a,b", "--category", "hot=a"], "category"),
        (["--labels", "a,a"], "labels"),
        (["--labels", "a,"], "labels"),
        (["--integer", "9", "0"], "high"),
        (["--attribute", "x=0..5", "--attribute", "x=a,b"], "attribute"),
        (["--attribute", "x=0.0..5.0", "--attribute", "y=a,b"], "attribute"),
    ],
)
def test_what_makes_no_survey_is_refused_in_a_sentence(files: Path, capsys, arguments, said) -> None:
    error = fails(capsys, *NEW, "new.toml", *arguments)
    assert said in error
    assert error.count("\n") == 1
    assert not (files / "new.toml").exists()


def test_a_new_survey_that_breaks_a_rule_is_not_written(files: Path, capsys) -> None:
    said = fails(
        capsys, "new", "--id", "Drinks", "--epsilon", "1", "--integer", "0", "9", "--out", "new.toml"
    )
    assert "id" in said and not (files / "new.toml").exists()


def test_a_private_key_is_its_owners_alone_and_never_overwritten(files: Path, capsys) -> None:
    public = run(capsys, "keygen", "--out", "survey.key")
    path = files / "survey.key"
    assert len(public_key(public)) == 32
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert path.read_bytes().startswith(b"-----BEGIN PRIVATE KEY-----")
    before = path.read_bytes()
    assert "not overwritten" in fails(capsys, "keygen", "--out", "survey.key")
    assert path.read_bytes() == before


def test_lists_count_on_and_keep_what_was_cancelled(files: Path, capsys) -> None:
    public = run(capsys, "keygen", "--out", "survey.key")
    sign = ["sign", "--key", "survey.key", "--out", "list.bin", "--json"]
    first = json.loads(run(capsys, *sign, "labels.toml", "visits.toml", "--days", "2"))
    assert (first["sequence"], first["key"]) == (1, public)
    assert first["expires_s"] - first["issued_s"] == 2 * 86_400
    second = json.loads(run(capsys, *sign, "labels.toml", "--cancel", "visits.toml"))
    labels, visits = (Survey.load(files / f"{name}.toml") for name in ("labels", "visits"))
    assert (second["sequence"], second["cancelled"]) == (2, [visits.digest.hex()])
    third = json.loads(run(capsys, *sign))
    assert (third["surveys"], third["dropped"]) == ([], [labels.digest.hex()])
    fourth = json.loads(run(capsys, *sign, "--cancel", labels.digest.hex()))
    opened = open_signed((files / "list.bin").read_bytes(), [public_key(public)])
    assert (opened.listed.sequence, opened.listed.cancelled) == (4, (visits.digest, labels.digest))
    assert fourth["cancelled"] == [visits.digest.hex(), labels.digest.hex()]
    assert "every survey once" in fails(capsys, *sign, "labels.toml")  # cancelled stays cancelled
    assert open_signed((files / "list.bin").read_bytes(), [public_key(public)]) == opened


def test_a_signed_list_is_told_in_moments_of_a_calendar(files: Path, capsys, monkeypatch) -> None:
    run(capsys, "keygen", "--out", "survey.key")
    monkeypatch.setattr("hubbub_deploy.commands.survey.survey.time.time", lambda: 1_767_225_600.0)
    told = run(capsys, "sign", "--key", "survey.key", "--out", "list.bin", "labels.toml").splitlines()
    assert told[1] == "issued     2026-01-01 00:00 UTC"
    assert told[2] == "expires    2026-01-31 00:00 UTC, in 30 d: sign again before"
    assert [line.split()[0] for line in told] == ["sequence", "issued", "expires", "key", "surveys"]


def test_a_survey_from_stdin_is_designed_rehearsed_and_signed(files: Path, capsys, monkeypatch) -> None:
    def piped(*words: str) -> str:
        with (files / "labels.toml").open("rb") as text:
            monkeypatch.setattr("sys.stdin", io.TextIOWrapper(text))
            return run(capsys, *words)

    assert piped("design", "-") == run(capsys, "design", "labels.toml")
    assert "a device with a budget of 4: enrolled" in piped("rehearse", "-", "--rounds", "1")
    run(capsys, "keygen", "--out", "survey.key")
    listed = json.loads(piped("sign", "-", "--key", "survey.key", "--out", "list.bin", "--json"))
    survey = Survey.load(files / "labels.toml")
    assert listed["surveys"] == [f"{survey.id} version {survey.version}"]
    for nothing in (io.TextIOWrapper(io.BytesIO()), None):
        monkeypatch.setattr("sys.stdin", nothing)
        assert fails(capsys, "rehearse", "-") == "hubbub: stdin must hold a survey, once, got nothing more\n"


def test_another_key_goes_on_only_where_the_former_one_is_named(files: Path, capsys) -> None:
    former = run(capsys, "keygen", "--out", "old.key")
    public = run(capsys, "keygen", "--out", "new.key")
    run(capsys, "sign", "--key", "old.key", "--out", "list.bin", "labels.toml")
    sign = ["sign", "--key", "new.key", "--out", "list.bin", "labels.toml"]
    assert "--former" in fails(capsys, *sign)
    run(capsys, *sign, "--former", former)
    opened = open_signed((files / "list.bin").read_bytes(), [public_key(public)])
    assert opened.listed.sequence == 2


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--key", "labels.toml"], "must be an Ed25519 private key"),
        (["--key", "nowhere"], "cannot be read"),
        (["--days", "0"], "--days must be above 0 and at most 366"),
        (["--days", "inf"], "--days must be above 0 and at most 366"),
        (["--cancel", "nowhere"], "--cancel must be a survey file or a digest"),
        (["--former", "00"], "64 hexadecimal digits"),
        (["--out", "nowhere/list.bin"], "cannot be written"),
    ],
)
def test_what_cannot_be_signed_is_refused_in_a_sentence(files: Path, capsys, arguments, said) -> None:
    run(capsys, "keygen", "--out", "survey.key")
    given = ["--key", "survey.key", "--out", "list.bin", "labels.toml"]
    assert said in fails(capsys, "sign", *given, *arguments)
    assert not (files / "list.bin").exists()


def test_a_design_is_written_to_a_new_file_alone_and_says_what_it_chose(files: Path, capsys) -> None:
    run(capsys, *NEW, "new.toml", "--labels", "a,b,c")
    assert main(["survey", "design", "new.toml", "--write", "out.toml"]) == 0
    taken, said = capsys.readouterr().err.splitlines()
    chosen = Survey.load("new.toml").choice.mechanism
    assert taken.startswith(f"new.toml: auto takes {chosen}")
    assert said.startswith(f'wrote out.toml with [mechanism] name = "{chosen}"')
    before = (files / "new.toml").read_bytes()
    assert "not overwritten" in fails(capsys, "design", "new.toml", "--write", "new.toml")
    assert (files / "new.toml").read_bytes() == before


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--plot", "no/where.png"], "no/where.png: cannot be written: No such file or directory"),
        (["--plot", "folder.png"], "folder.png: cannot be written: Is a directory"),
        (["--plot", "x.doc"], "--plot must end in one of .png, .svg, .pdf, .html, got 'x.doc'"),
        (["--plot", "x.html", "--epsilon", "1"], "--plot must end in .png, .svg or .pdf here, got 'x.html'"),
        (["--write", "visits.toml"], "visits.toml is there already, and is not overwritten"),
        (["--write", "no/where.toml"], "no/where.toml: cannot be written: No such file or directory"),
    ],
)
def test_a_design_refuses_what_it_cannot_write_before_minutes_of_work(
    files: Path, capsys, monkeypatch: pytest.MonkeyPatch, words: list[str], said: str
) -> None:
    (files / "folder.png").mkdir()
    monkeypatch.setattr(SurveyDesign, "of", lambda *_: pytest.fail("the work was begun"))
    assert fails(capsys, "design", "visits.toml", *words) == f"hubbub: {said}\n"


def test_a_picture_that_takes_long_says_how_far_it_is(files: Path, capsys, monkeypatch) -> None:
    monkeypatch.setattr("hubbub_deploy.commands.survey.design_plot.TOLD_S", 0.0)
    run(capsys, *NEW, "new.toml", "--labels", "a,b,c")
    assert main(["survey", "design", "new.toml", "--plot", "x.svg"]) == 0
    taken, *said = capsys.readouterr().err.splitlines()
    assert taken.startswith("new.toml: auto takes ")
    assert said == [f"picture: {done} of 11 epsilons compared" for done in range(11)]
    assert (files / "x.svg").stat().st_size > 10_000


def test_a_dictionary_overwrites_nothing_and_reads_what_editors_write(files: Path, capsys) -> None:
    texts = Path("texts")
    texts.write_bytes("\ufeffgo\r\nchess\r\n".encode())
    Path("plain").write_text("chess\ngo\n", encoding="utf-8")
    run(capsys, "dictionary", "texts", "--out", "d", "--order", "o")
    run(capsys, "dictionary", "plain", "--out", "e")
    assert Path("d").read_bytes() == Path("e").read_bytes()
    assert sorted(Path("o").read_text(encoding="utf-8").split()) == ["chess", "go"]
    kept = texts.read_bytes()
    for words in (["--out", "texts"], ["--out", "f", "--order", "texts"], ["--out", "d"]):
        assert "is there already, and is not overwritten" in fails(capsys, "dictionary", "texts", *words)
    assert texts.read_bytes() == kept
    Path("twice").write_text("a\nb\na\n", encoding="utf-8")
    assert "must differ, got 'a' and 'a'" in fails(capsys, "dictionary", "twice", "--out", "g")
    assert not Path("g").exists()
