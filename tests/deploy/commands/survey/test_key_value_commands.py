"""Commands about a number that some lack: design, check, replay, and what is typed or read of a file."""

from __future__ import annotations

import csv
import json
import math
from pathlib import Path

import numpy as np
import pytest
from surveys import MINUTES

from hubbub.survey import Attribute
from hubbub_deploy import __main__
from hubbub_deploy.commands.agent.answer import value_of as typed
from hubbub_lab.evaluation.people import value_of as read_of_file

NUMBER = Attribute.number("minutes", 0, 600, kind="static", absent=True)


@pytest.fixture
def survey(tmp_path: Path) -> Path:
    path = tmp_path / "minutes.toml"
    path.write_text(MINUTES.replace("epsilon = 1.0", "epsilon = 3.0").replace("share", "points = 16\nshare"))
    return path


def test_a_design_says_the_floor_the_other_channel_and_what_a_wrong_plan_costs(survey, capsys):
    assert __main__.main(["survey", "design", str(survey), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    workload = found["workload"]
    assert workload == found["questions"][0]
    assert workload["total"] > workload["floor"] > 0.6 * workload["total"]
    assert workload["above_floor"] is None  # the crowd is none that is spread evenly
    # n Var of the mean is what it is over the randomisation and what drawing devices adds.
    sampling = np.linspace(0.0, 600.0, 65).var() / 0.1
    error = math.sqrt((workload["total"] + sampling) / found["devices"])
    assert found["standard_error"]["mean"] == pytest.approx(error, rel=1e-9)
    (other,) = found["alternatives"]
    assert other["parameters"] == {"points": 2}
    assert other["standard_error"]["mean"] > error
    half, double = found["if_share"]
    assert (half["share"], double["share"]) == (0.05, 0.2)
    assert half["error"] > error > double["error"]
    assert all(each["error"] >= 0.99 * each["planned_error"] for each in found["if_share"])
    assert __main__.main(["survey", "design", str(survey)]) == 0
    said = capsys.readouterr().out
    assert "instead by key_value 2: the mean to ±" in said
    assert "If another share has one, the mean is known at 5 % ±" in said


def test_a_table_is_replayed_against_its_truth(survey, tmp_path, capsys):
    """2,000 devices: by the intervals' own promise the mean is missed by 6 errors with probability 1e-8."""
    table = tmp_path / "people.csv"
    with table.open("w", newline="") as stream:
        write = csv.writer(stream)
        write.writerow(["minutes"])
        write.writerows([["absent"]] * 900 + [[""]] * 100 + [["150"]] * 500 + [["450.0"]] * 500)
    out = tmp_path / "out"
    command = ["replay", str(table), "--survey", str(survey), "--seed", "4", "--out", str(out), "--json"]
    assert __main__.main(command) == 0
    (found,) = json.loads(capsys.readouterr().out)
    rows = {(row["kind"], row["label"]): row for row in found["rows"]}
    truths = {label: rows["category", label]["truth"] for label in ("present", "absent", "missing")}
    assert truths == pytest.approx({"present": 0.5, "absent": 0.45, "missing": 0.05})
    mean = next(row for row in found["rows"] if row["kind"] == "mean")
    assert mean["truth"] == pytest.approx(300.0)
    assert abs(mean["estimate"] - 300.0) < 6 * mean["error"]


def test_absent_is_a_word_where_values_are_typed_or_read():
    plain = Attribute.number("minutes", 0, 600, kind="static")
    for read in (typed, read_of_file):
        assert read(NUMBER, "absent") == "absent"
        assert read(NUMBER, "12.5") == 12.5
        assert read(plain, "absent") is None
