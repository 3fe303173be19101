"""`hubbub survey design` over epsilons and devices; what one person gives up; where a survey cannot work."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import pytest
from matplotlib.figure import Figure
from surveys import small

from hubbub_deploy.cli import main

TWELVE_VALUES = """\
type = "integer"
low = 0
high = 11"""


def written(
    tmp_path: Path, *, cohort: int = 200, devices: int = 20_000, rounds: int = 6, kind: str = "evolving"
) -> str:
    file = tmp_path / "visits.toml"
    file.write_text(small("visits", TWELVE_VALUES, kind=kind, cohort=cohort, devices=devices, rounds=rounds))
    return str(file)


def test_the_table_has_a_row_an_epsilon_and_a_column_a_number_of_devices(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, picture = written(tmp_path), tmp_path / "plan.png"
    words = ["survey", "design", file, "--epsilon", "2,0.5", "--devices", "5e3,50000", "--want", "1pt"]
    assert main([*words, "--plot", str(picture)]) == 0
    out = capsys.readouterr().out
    rows = [line.split() for line in out.splitlines() if "±" in line and "up to" in line]
    assert [row[0] for row in rows] == ["0.5", "2"]
    errors = [[float(cell[1:]) for cell in row if cell.startswith("±")] for row in rows]
    for few, many in errors:
        assert few / many == pytest.approx(math.sqrt(10), rel=0.01)
    assert errors[0][0] > errors[1][0]
    assert "up to 7.39" in out
    assert re.search(r"For ±1 points with 50,000 devices: epsilon \d", out)
    assert re.search(r"For ±1 points at epsilon 2: [\d,]+ devices", out)
    assert picture.read_bytes()[:4] == b"\x89PNG"


@pytest.mark.parametrize("words", [["--epsilon", "0.5,2,4", "--devices", "5e3,50000", "--want", "3pt"], []])
def test_pictures_have_ticks_as_people_write_numbers(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every tick of every panel, the small ones too: 0.5, 1, 2 and no powers of ten."""
    drawn: list[Figure] = []
    write = Figure.savefig

    def kept(figure: Figure, *given: Any, **named: Any) -> None:
        drawn.append(figure)
        write(figure, *given, **named)

    monkeypatch.setattr(Figure, "savefig", kept)
    assert main(["survey", "design", written(tmp_path), *words, "--plot", str(tmp_path / "plan.png")]) == 0
    axes = [axis for panel in drawn[0].axes for axis in (panel.xaxis, panel.yaxis)]
    for axis in axes:
        low, high = axis.get_view_interval()
        shown = [tick for tick in axis.get_ticklabels(which="both") if tick.get_text()]
        places = [place for place in axis.get_ticklocs() if low <= place <= high]
        assert len(places) >= 2
        for tick in shown:
            assert re.fullmatch(r"[-\u2212]?\d{1,6}(\.\d{1,3})?", tick.get_text()), tick
    assert {axis.get_scale() for axis in axes} & {"log"}


def test_json_says_the_same_in_shares(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["survey", "design", written(tmp_path), "--want", "2pt", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [(row["epsilon"], row["devices"]) for row in found["errors"]] == [(1.0, 20_000)]
    assert found["want"] == 0.02
    half, fewest = found["errors"][0]["half_interval"], found["fewest_devices"]["1"]
    assert fewest == pytest.approx(20_000 * (half / 0.02) ** 2, rel=1e-3)


def test_a_mean_is_wanted_in_its_unit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["survey", "design", written(tmp_path), "--objective", "mean", "--want"]
    assert main([*words, "0.2"]) == 0
    assert "For ±0.2 with 20,000 devices: epsilon" in capsys.readouterr().out
    assert main([*words, "1pt"]) == 1
    assert "--want must be in the unit of the mean, without pt" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("option", "value"), [("--epsilon", "1,x"), ("--epsilon", "0"), ("--devices", "2.5"), ("--want", "pt")]
)
def test_what_is_no_list_of_numbers_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], option: str, value: str
) -> None:
    with pytest.raises(SystemExit):
        main(["survey", "design", written(tmp_path), option, value])
    assert f"got {value!r}" in capsys.readouterr().err


def test_what_one_person_gives_up_is_said_as_odds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["survey", "design", written(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert (
        "by a factor of at most 2.72, all 6 rounds together by at most 404" in out
    )  # e^6 = 403.4, rounded up
    assert "Warning" not in out
    assert main(["survey", "design", written(tmp_path, kind="static")]) == 0
    out = capsys.readouterr().out
    assert "all 6 rounds send the same noisy answer" in out
    assert re.search(r"a name that the device keeps, of at most [\d.]+ bits; 14\.3 tell all planned dev", out)


@pytest.mark.parametrize(
    ("changed", "more", "rule"),
    [
        ({"cohort": 30_000}, [], "minimum_cohort 30,000 is above the planned 20,000 devices"),
        ({"cohort": 2, "devices": 40}, [], "points only: the interval is wider than the whole scale"),
        (
            {"rounds": 9},
            ["--budget", "4"],
            "its 9 rounds cost 9 and devices have 4 for life",
        ),
        (
            {"rounds": 1},
            ["--budget", ".5"],
            "a report costs 1 and devices have 0.5 for life",
        ),
    ],
)
def test_a_survey_that_cannot_work_is_warned_of(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], changed: dict[str, int], more: list[str], rule: str
) -> None:
    words = ["survey", "design", written(tmp_path, **changed), *more]
    assert main(words) == 0
    assert rule in capsys.readouterr().out
    assert main([*words, "--json"]) == 0
    assert any(rule in each for each in json.loads(capsys.readouterr().out)["warnings"])


def test_a_budget_is_spread_over_rounds_in_turns(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["survey", "design", written(tmp_path, devices=24_000), "--over", "12", "--budget", "1"]
    assert main(words) == 0
    out = capsys.readouterr().out
    rows = [line.split() for line in out.splitlines() if "±" in line]
    assert [row[:4] for row in rows] == [
        ["none", "12", "0.08333", "24,000"],
        ["2", "6", "0.1667", "12,000"],
        ["3", "4", "0.25", "8,000"],
        ["4", "3", "0.3333", "6,000"],
        ["6", "2", "0.5", "4,000"],
        ["12", "1", "1", "2,000"],
    ]
    halves = [float(row[4][1:]) for row in rows]
    assert halves == sorted(halves, reverse=True)
    assert f"Best is rotation = 12, epsilon = 1: its interval is {halves[0] / halves[-1]:.1f}" in out
    assert main([*words, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [100 * way["half_interval"] for way in found["ways"]] == pytest.approx(halves, rel=0.01)
    assert [way["rotation"] for way in found["ways"]] == [1, 2, 3, 4, 6, 12]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ([], "--over must come with --budget, got 12 without it"),
        (["--budget", "1", "--want", "1pt"], "--want must be absent with --over, got 12 with it"),
        (
            ["--budget", "1", "--objective", "cdf"],
            "must be value, category, both or mean over time",
        ),
    ],
)
def test_what_does_not_go_with_rounds_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], more: list[str], said: str
) -> None:
    assert main(["survey", "design", written(tmp_path), "--over", "12", *more]) == 1
    assert said in capsys.readouterr().err


def test_a_rotating_survey_is_designed_for_the_devices_of_a_round(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "panel.toml"
    rotating = small("visits", TWELVE_VALUES, cohort=200, devices=24_000, rounds=52, rotation=12)
    file.write_text(rotating)
    assert main(["survey", "design", str(file), "--budget", "4.5"]) == 0
    out = capsys.readouterr().out
    assert "With 2,000 devices" in out
    assert "its 5 of 52 rounds, one in every 12, together by at most 149" in out  # e^5 = 148.41
    assert "its 5 answers cost 5 and devices have 4.5 for life: none of them takes part; 4 of them fit" in out
    file.write_text(rotating.replace("= 24000", "= 2388"))
    assert main(["survey", "design", str(file)]) == 0
    warned = "minimum_cohort 200 is above the 199 of a round, one in 12 of the planned 2,388 devices"
    assert warned in capsys.readouterr().out
