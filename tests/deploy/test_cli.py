"""The command line: misuse is exit 2, failure exit 1 in one line on stderr; stdout holds results alone."""

from __future__ import annotations

import argparse
import json
import re
import shlex
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest
from command import COMMAND, environment
from surveys import LABELS, VISITS

from hubbub import Survey
from hubbub_client import TokenIssuer
from hubbub_collector.token_issuer import IssuerSettings
from hubbub_deploy import cli
from hubbub_deploy.cli import EXAMPLES, main, named


@pytest.fixture
def labels(tmp_path: Path) -> Path:
    path = tmp_path / "labels.toml"
    path.write_text(LABELS, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["dance"], "invalid choice: 'dance'"),
        (["demo", "--people", "0"], "--people: must be an integer of at least 1, got '0'"),
        (["demo", "--people", "many"], "--people: must be an integer of at least 1, got 'many'"),
        (["demo", "--seed", "-1"], "--seed: must be an integer of at least 0, got '-1'"),
        (["demo", "--port", "65536"], "--port: must be an integer of at least 0 and at most 65535"),
        (["demo", "--page", "maybe"], "--page: invalid choice"),
        (["node"], "required: SURVEY, --data"),
        (["node", "a.toml"], "required: --data"),
        (["node", "a.toml", "--data", "d", "--port", "-1"], "--port: must be an integer of at least 0"),
        (["node", "a.toml", "--data", "d", "--partitions", "0"], "--partitions: must be an integer"),
        (["node", "a.toml", "--data", "d", "--grace-s", "nan"], "--grace-s: must be a finite number"),
        (["node", "a.toml", "--data", "d", "--grace-s", "-1"], "--grace-s: must be a finite number"),
        (["node", "a.toml", "--data", "d", "--colour"], "unrecognized arguments: --colour"),
        (["replay", "a.csv"], "required: --survey"),
        (["survey"], "required: VERB"),
        (["survey", "compile", "a.toml"], "required: --out"),
    ],
)
def test_misuse_exits_two_and_says_what_was_wrong(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert said in err


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("epsilon = 1.0", "epsilon = 0.0"), ("epsilon", "must be a finite number from 1e-06 to 40", "0.0")),
        (("version = 1", "version = 1\ncolour = 3"), ("colour", "must be", "3")),
        (('name = "grr"', 'name = "noise"'), ("mechanism.name", "must be one of", "'noise'")),
        (('round = "1d"', 'round = "soon"'), ("schedule.round", "must be", "'soon'")),
    ],
)
@pytest.mark.parametrize("command", ["check", "compile", "node", "replay"])
def test_bad_survey_exits_one_with_file_key_rule_and_value_in_one_line(
    command: str,
    change: tuple[str, str],
    said: tuple[str, ...],
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    labels = tmp_path / "labels.toml"
    assert change[0] in LABELS
    labels.write_text(LABELS.replace(*change), encoding="utf-8")
    arguments = {
        "check": ["survey", "check", labels, "--json"],
        "compile": ["survey", "compile", labels, "--out", tmp_path / "out"],
        "node": ["node", labels, "--data", tmp_path / "data"],
        "replay": ["replay", tmp_path / "people.csv", "--survey", labels],
    }[command]
    assert main([str(argument) for argument in arguments]) == 1
    out, err = capfd.readouterr()
    assert out == ""
    assert err.startswith("hubbub: ")
    assert err.count("\n") == 1
    assert [part for part in (str(labels), *said) if part not in err] == []
    assert sorted(path.name for path in tmp_path.iterdir()) == ["labels.toml"]


@pytest.mark.parametrize(
    ("content", "said"),
    [(None, "must be a readable file"), (b"id = \xff", "must be UTF-8"), (b"id = [", "must be TOML")],
)
def test_unreadable_survey_exits_one_in_one_line(
    content: bytes | None, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "survey.toml"
    if content is not None:
        path.write_bytes(content)
    assert main(["survey", "check", str(path)]) == 1
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert str(path) in err
    assert said in err


def test_check_prints_what_devices_are_asked_for(labels: Path, capsys: pytest.CaptureFixture[str]) -> None:
    survey = Survey.load(labels)
    assert main(["survey", "check", str(labels), "--json"]) == 0
    out, err = capsys.readouterr()
    facts = json.loads(out)
    assert err == ""
    assert facts["digest"] == survey.digest.hex()
    assert facts["epsilon"] == survey.channel.epsilon <= facts["declared_epsilon"] == 1.0
    assert (facts["inputs"], facts["outputs"]) == (5, 5)
    assert main(["survey", "check", str(labels)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(facts)


def test_check_says_that_a_stranger_can_fill_a_quota(
    labels: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["survey", "check", str(labels), "--json"]) == 0
    assert "quota" not in json.loads(capsys.readouterr().out)
    labels.write_text(LABELS.replace("version = 1", "version = 1\nquota = 700"), encoding="utf-8")
    assert main(["survey", "check", str(labels), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["quota"] == 700
    assert "one stranger can fill a round" in facts["beware"]
    assert main(["survey", "check", str(labels)]) == 0
    assert facts["beware"] in capsys.readouterr().out


def test_check_says_what_auto_chose_and_why(labels: Path, capsys: pytest.CaptureFixture[str]) -> None:
    labels.write_text(LABELS.replace('name = "grr"', 'name = "auto"'), encoding="utf-8")
    survey = Survey.load(labels)
    assert main(["survey", "check", str(labels), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["mechanism"] == {"name": survey.choice.mechanism, **survey.choice.parameters}
    assert facts["why"] == f"auto: {survey.choice.why}"
    assert main(["survey", "check", str(labels)]) == 0
    assert survey.choice.why in capsys.readouterr().out


def test_compile_writes_the_bytes_that_devices_check(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, target = tmp_path / "visits.toml", tmp_path / "visits.bin"
    source.write_text(VISITS, encoding="utf-8")
    assert main(["survey", "compile", str(source), "--out", str(target)]) == 0
    assert Survey.from_canonical(target.read_bytes()) == Survey.load(source)
    assert Survey.load(source).digest.hex() in capsys.readouterr().out


def test_output_that_cannot_be_written_exits_one_in_one_line(
    labels: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "no" / "where"
    assert main(["survey", "compile", str(labels), "--out", str(target)]) == 1
    out, err = capsys.readouterr()
    assert (out, err) == ("", f"hubbub: {target}: cannot be written: No such file or directory\n")


def test_reader_that_leaves_early_is_no_error(labels: Path) -> None:
    process = subprocess.Popen(
        [*COMMAND, "survey", "check", str(labels)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
    )
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait(30) == 0


def test_a_survey_is_checked_without_any_server_library(labels: Path) -> None:
    code = (
        "import sys\n"
        "from hubbub_deploy.cli import main\n"
        f"main(['survey', 'check', {str(labels)!r}])\n"
        "unwanted = ('starlette', 'uvicorn', 'rich', 'matplotlib', 'statsmodels')\n"
        "print(*(module for module in unwanted if module in sys.modules), file=sys.stderr)"
    )
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment()
    )
    assert found.stderr.split() == []


NAMES = {
    "try": ["demo", "replay", "evaluate", "simulate", "audit"],
    "ask": ["survey", "programme", "agent"],
    "check others": ["verify", "log", "witness", "monitor"],
    "one machine": ["node", "export", "delete", "dead-letters", "config"],
    "a cluster": ["topic", "collector", "aggregator", "dashboard", "issuer", "add-partitions", "skip-lost"],
}


def listed(text: str) -> dict[str, list[str]]:
    """The commands that a help text lists under each of its headings."""
    parts = re.findall(r"^([a-z ]+):\n((?:  [a-z-]+ +.+\n)+)", text, flags=re.MULTILINE)
    return {
        heading: re.findall(r"^  ([a-z-]+)", lines, flags=re.MULTILINE)
        for heading, lines in parts
        if heading != "options"
    }


@pytest.mark.parametrize("program", [[*COMMAND], [sys.executable, "-m", "hubbub_deploy"]])
def test_help_lists_the_commands_under_headings(program: list[str]) -> None:
    found = subprocess.run(
        [*program, "--help"], capture_output=True, check=False, text=True, env=environment()
    )
    assert (found.returncode, found.stderr) == (0, "")
    assert listed(found.stdout) == NAMES


def test_the_command_alone_says_what_to_do_next(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    lines = capsys.readouterr().out.strip().splitlines()
    assert len(lines) <= 7
    assert {line.split()[1] for line in lines[2:]} == {"demo", "survey", "replay", "node", "--help"}


def test_every_command_ends_its_help_with_an_example_that_it_takes() -> None:
    commands = next(each for each in cli._parser()._actions if isinstance(each, argparse._SubParsersAction))
    words = dict(named(commands))
    assert set(EXAMPLES) <= set(words)
    for name, parser in words.items():
        examples = [
            line.strip().replace("\\", "")
            for line in re.sub(r"\\\n +", "", str(parser.epilog)).splitlines()
            if line.startswith("  hubbub ")
        ]
        assert examples, name
        for example in examples:
            assert example.startswith(f"hubbub {name} ") or name in ("survey", "agent", "issuer", "config")
            cli._parser().parse_args(shlex.split(example)[1:])


def test_every_command_is_one_file_or_room_that_the_command_line_lists() -> None:
    folder = Path(cli.__file__).parent / "commands"
    files = [path for path in folder.rglob("*.py") if "\ndef add_to(commands:" in path.read_text()]
    names = [name for under in NAMES.values() for name in under]
    assert sorted(path.stem for path in files) == sorted(name.replace("-", "_") for name in names)
    assert all(path.parent in (folder, folder / path.stem) for path in files)
    assert {
        heading: [command.__name__.rpartition(".")[2].replace("_", "-") for command in commands]
        for heading, commands in cli.HEADINGS.items()
    } == NAMES


def test_issuer_and_devices_agree_on_the_quantity_where_nobody_says_one() -> None:
    parse = cli._parser().parse_args
    files = ["--credentials", "c", "--data", "d"]
    key = ["--collector", "http://127.0.0.1:1"]
    asked = [
        parse(["issuer", "serve", "key.pem", *files]).quantity,
        parse(["agent", "answer", "--ledger", "l", *key]).quantity,
        parse(["simulate", "a.csv", *key]).quantity,
        next(each.default for each in fields(TokenIssuer) if each.name == "quantity"),
        next(each.default for each in fields(IssuerSettings) if each.name == "quantity"),
    ]
    assert asked == [4] * 5
