"""`hubbub evaluate` at the command line: the report, the JSON of all figures, and wrong inputs."""

from __future__ import annotations

import csv
import json
import math
import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from bundles import bundle_text

from hubbub_deploy.cli import main
from hubbub_lab.evaluate.charts import DotAxis, DotRow, dot_plot

GOLDEN = Path(__file__).parents[2] / "golden"
EXAMPLES = Path(__file__).parents[3] / "docs" / "examples"


class Page(HTMLParser):
    """The cells of a page's tables, and everything that it would load."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tables: list[list[list[str]]] = []
        self.loads: list[str] = []
        self.tags: list[str] = []
        self.roles: list[str | None] = []
        self._open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.tags.append(tag)
        self.roles.append(given.get("role"))
        self.loads += [value or "" for name, value in attrs if name in ("src", "href", "srcset", "data")]
        if tag == "table":
            self.tables.append([])
        if tag == "tr":
            self.tables[-1].append([])
        if tag in ("td", "th"):
            assert tag == "td" or given["scope"] == "col"
            self.tables[-1][-1].append("")
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in ("td", "th"):
            self._open.pop()

    def handle_data(self, data: str) -> None:
        if self._open:
            self.tables[-1][-1][-1] += data


def test_a_report_and_its_json_hold_every_figure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    people = tmp_path / "people.csv"
    with people.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["plan", "age"])
        rows.writerows([["<b>&", "3"], ["free", "4"], ["free", ""], ["paid", "7"]] * 100)
    words = f"evaluate --data {people}:plan --mechanisms auto,grr --epsilon 1,2 --devices 400,1000"
    out, figures = tmp_path / "report.html", tmp_path / "figures.json"
    more = f"--faults fakes=0.1 --repeats 2 --seed 5 --out {out} --json {figures}"
    assert main([*words.split(), *more.split()]) == 0
    said = capsys.readouterr()
    few = "2 rounds are too few to compare mechanisms by measured errors (10 or more): exact ones do not vary"
    assert few in said.out and few in out.read_text()
    assert "intervals hold the truth" in said.out and "16 cases, 22,400 reports" in said.err
    found = json.loads(figures.read_text())
    keys = [
        tuple(case[key] for key in ("devices", "mechanism", "epsilon", "faults")) for case in found["cases"]
    ]
    assert len(set(keys)) == len(keys) == 16 and (1000, "grr", 2.0, "fakes=0.1") in keys
    assert found["peak_bytes"] > 2**20 and found["seed"] == 5
    text = out.read_text()
    page = Page(text)
    assert page.loads == [] and not {"script", "link", "img", "iframe", "b"} & set(page.tags)
    assert "url(" not in text and "@import" not in text and not re.search(r"https?://", text)
    assert page.roles.count("img") == page.tags.count("title") - 1 > 3
    errors, costs = page.tables
    shown = [row[:6] for row in errors[1:]]
    assert len(shown) == sum(len(case["figures"]) for case in found["cases"]) == 16
    for case, row, cost in zip(found["cases"], errors[1:], costs[1:], strict=True):
        figure = case["figures"]["value"]
        assert row[:2] == ["people.csv:plan", f"{case['devices']:,}"]
        assert row[6:9] == [
            f"{100 * figure['error']:.3g} pt",
            f"{100 * figure['exact']:.3g} pt",
            f"{figure['ratio']:.3f} ± {figure['error_se'] / figure['exact']:.3f}",
        ]
        assert row[9] == f"{100 * figure['consistent']:.3g} pt"
        assert row[13] == f"{figure['hits']} of {figure['intervals']}"
        assert cost[13] == f"{case['verdicts']['accepted']:,}"
    assert "&lt;b&gt;&amp;" in text
    read = text[text.index("How to read this") :]
    assert [head for head in errors[0][6:] if f"<strong>{head}</strong>" not in read] == []


def test_a_survey_file_is_asked_as_it_is_and_with_other_mechanisms(
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = ["evaluate", str(GOLDEN / "survey-labels.toml"), "--data", "zipf", "--mechanisms", "own,subset"]
    assert main([*words, "--devices", "300", "--repeats", "1", "--json", "-"]) == 0
    found = json.loads(capsys.readouterr().out)
    own, subset = found["cases"]
    assert own["inputs"] == subset["inputs"] == 5 and own["compiled"] == "own: grr"
    assert (own["report_bytes"], subset["report_bytes"]) == (37, 39)
    assert set(own["figures"]) == {"value"} and own["faults"] == "none"


def test_tables_and_numbers_are_evaluated(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    numbers = tmp_path / "numbers.csv"
    numbers.write_text("diseases\n" + "\n".join(f"{number}.5" for number in range(60)) + "\nNA\n")
    survey = tmp_path / "survey.toml"
    text = (GOLDEN / "survey-diseases.toml").read_text()
    survey.write_text(text.replace("points = 31", "points = 5"))  # whose floor takes no second
    words = ["evaluate", str(survey), "--data", str(numbers), "--json", "-"]
    assert main([*words, "--repeats", "1"]) == 0
    (case,) = json.loads(capsys.readouterr().out)["cases"]
    assert set(case["figures"]) == {"value", "mean"} and case["devices"] == 61
    assert case["figures"]["mean"]["exact"] > case["figures"]["mean"]["floor"] > 0
    joint = EXAMPLES / "age-by-sex.toml"
    assert main(["evaluate", str(joint), "--devices", "500", "--repeats", "1", "--json", "-"]) == 0
    (case,) = json.loads(capsys.readouterr().out)["cases"]
    assert set(case["figures"]) == {"value", "category"} and case["figures"]["value"]["floor"] is None


def test_an_axis_holds_its_numbers_and_a_plot_its_words() -> None:
    axis = DotAxis.log([0.03, 0.2, 4.0], lambda at: f"{at:g}")
    places = [axis.place(at) for at in (0.0, 0.03, 0.2, 4.0, 99.0)]
    assert places == sorted(places) and 2.0 <= places[0] < places[1] < places[3] < places[4] <= 98.0
    assert 2 <= len(axis.ticks) <= 6 and all(axis.low <= tick <= axis.high for tick in axis.ticks)
    middle = math.sqrt(axis.low * axis.high)
    assert axis.place(middle) == pytest.approx(50.0)
    plot = dot_plot("a", "<t>", [DotRow("x < y", "2 & 3", (("exact", middle),))], axis, description="d")
    page = Page(plot)
    assert page.tags.count("circle") == 1 and 'cx="50.00%"' in plot
    assert "x &lt; y" in plot and "2 &amp; 3" in plot and '<title id="a-t">&lt;t&gt;</title>' in plot


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("", "a survey or --data must be given, got neither"),
        ("--data zipf", "--data zipf must say how many values without a survey, got zipf"),
        ("--data zipf:1", "--data: K of zipf must be an integer from 2 to"),
        ("--data zipf:5:x", "--data: the exponent of zipf must be from 0 to 10, got 'x'"),
        ("--data uniform:5:2", "--data: must be zipf:K:EXPONENT or uniform:K, got 'uniform:5:2'"),
        ("--data people.csv", "--data must be FILE:COLUMN without a survey, got people.csv"),
        ("--data nowhere.csv:age", "nowhere.csv: cannot be read: No such file or directory"),
        ("--data people.csv:size", "people.csv: columns must include 'size', got age, one"),
        ("--data people.csv:one", "--data people.csv:one must hold two different values or more, got 1"),
        ("--data zipf:9 --mechanisms grr,laplace", "--mechanisms: a mechanism must be one of auto, own, grr"),
        ("--data zipf:9 --mechanisms pb-grr", "--mechanisms must fit zipf:9 at epsilon 1: auto, "),
        ("--data zipf:9 --mechanisms own", "--mechanisms own must come with a survey, got none"),
        ("--data zipf:9 --epsilon 1,-2", "--epsilon: must be a finite number above 0, got '-2'"),
        ("--data zipf:9 --devices 10,none", "--devices: must be an integer of at least 1, got 'none'"),
        ("--data zipf:9 --categories 10", "--categories must be from 2 to the 9 values, got 10"),
        (
            "--data zipf:9 --faults rain=0.1",
            "--faults: a fault must be one of loss, duplicates, skew, fakes, drift",
        ),
        ("--data zipf:9 --faults loss=2", "--faults: loss must be a share from 0 to 1, got '2'"),
        ("--data zipf:9 --faults loss=0.1+loss=0.2", "--faults: a fault must be given once, got loss again"),
        ("--data zipf:3 --faults loss=1 --devices 9", "faults loss=1 must leave a report to count, got none"),
        (
            "--data zipf:9 --out nowhere/r.html",
            "nowhere/r.html: cannot be written: No such file or directory",
        ),
        ("--data zipf:9 --json .", ".: cannot be written: Is a directory"),
        ("VISITS --categories 3", "--categories must be absent with a survey, got 3"),
        ("SCORE", "activity.toml must ask for values, got a score: it has a mean alone"),
        ("VISITS --data zipf:9", "--data zipf:9 must have the 21 values of the survey, got 9"),
    ],
)
def test_a_wrong_input_is_one_line(
    words: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("people.csv").write_text("age,one\n3,1\n4,1\n")
    for name, path in (("VISITS", GOLDEN / "survey-visits.toml"), ("SCORE", EXAMPLES / "activity.toml")):
        words = words.replace(name, str(path))
    assert main(["evaluate", *words.split()]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    *_, last = err.splitlines()
    assert last.startswith(f"hubbub: {said}"), last


@pytest.mark.parametrize("order", ["", "order = 3", 'parts = "interactions"'])
def test_a_bundle_is_evaluated_whatever_its_parts_are(
    order: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """30 rounds of 3,000 devices: the measured error is within 6 of its standard errors of the exact one."""
    survey, people = tmp_path / "bundle.toml", tmp_path / "people.csv"
    epsilon = 1.0 if "interactions" in order else 3.0  # where they gain
    text = bundle_text({"age": 3, "sex": 2, "job": 2}, epsilon=epsilon)
    survey.write_text(text.replace('tables = "pairs"', f'tables = "pairs"\n{order}'))
    crowd = np.random.default_rng(2).choice(12, 3_000, p=np.arange(1, 13) / 78)
    lines = [f"{x // 4},{x // 2 % 2},{x % 2}" for x in crowd.tolist()]
    people.write_text("\n".join(["age,sex,job", *lines]))
    words = ["evaluate", str(survey), "--data", str(people), "--repeats", "30", "--seed", "1", "--json", "-"]
    assert main(words) == 0
    (case,) = json.loads(capsys.readouterr().out)["cases"]
    assert set(case["figures"]) == {"value", "category"}
    for figure in case["figures"].values():
        assert abs(figure["error"] - figure["exact"]) < 6 * figure["error_se"]
        assert 0.9 < figure["coverage"] < 0.99
