"""Structured logs: every line is one JSON object, whoever wrote it."""

from __future__ import annotations

import io
import json
import logging
import sys
import traceback

import pytest
from command import hubbub_apart

from hubbub_deploy.cli import _parser, as_json_lines


def _speak() -> None:
    logging.getLogger("hubbub.collector").warning("%d uploads\nwait", 7)
    logging.getLogger("hubbub.collector").info("nobody reads this")
    try:
        raise ValueError("two\nlines")
    except ValueError:
        logging.getLogger("x").exception("it failed")
        traceback.print_exc()
    sys.stderr.write("half a ")
    sys.stderr.write("line\n\n")


def test_logs_and_tracebacks_are_one_object_per_line() -> None:
    lines = io.StringIO()
    undo = as_json_lines(lines, clock=lambda: 1_700_000_000.25)
    try:
        _speak()
    finally:
        undo()
    found = [json.loads(line) for line in lines.getvalue().splitlines()]
    assert [(each["level"], each["logger"]) for each in found[:2]] == [
        ("WARNING", "hubbub.collector"),
        ("ERROR", "x"),
    ]
    assert found[0]["message"] == "7 uploads\nwait"
    assert found[1]["error"].endswith("ValueError: two\nlines")
    assert {each["logger"] for each in found[2:]} == {"stderr"}
    assert [each["message"] for each in found[-3:]] == ["ValueError: two", "lines", "half a line"]
    assert found[-1]["time"] == "2023-11-14T22:13:20.250Z"


def test_a_process_that_cannot_start_says_so_in_json(tmp_path) -> None:
    ended = hubbub_apart("collector", tmp_path / "none.toml", tmp_path / "none", "--log", "json")
    (line,) = ended.stderr.splitlines()
    assert ended.returncode == 1
    assert json.loads(line)["message"].startswith("hubbub: ")


@pytest.mark.parametrize(
    "command", ["node x --data d", "collector c x", "aggregator c", "dashboard c --data d"]
)
def test_every_process_that_stays_has_the_flag(command: str) -> None:
    assert _parser().parse_args(command.split()).log == "text"
    assert _parser().parse_args([*command.split(), "--log", "json"]).log == "json"
