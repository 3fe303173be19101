"""Releases say who is missing of those asked; the archive is the authority, whatever its rendering."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from counting_logs import MINUTE, MemoryLog, MemoryStore, announcement, batch, report_id, segment
from surveys import LABELS

from hubbub.errors import ParameterError
from hubbub.estimation.poison import selection_bound
from hubbub.survey.survey import Survey
from hubbub_aggregator.errors import DivergedError
from hubbub_aggregator.release.after_shuffling import ShufflingStatements
from hubbub_aggregator.release.enrolment import FleetStatement
from hubbub_aggregator.release.round_release import canonical_bytes
from hubbub_aggregator.runners.publisher import Worker
from hubbub_aggregator.stores.archive import SqliteArchive
from hubbub_aggregator.web import documents
from hubbub_aggregator.web.view import LiveView
from hubbub_deploy.cli import main

HEALTH = Survey.parse(LABELS)
KEY = (HEALTH.digest, 0)


def minute_of(number: int) -> int:
    return MINUTE + number * HEALTH.round_s // 60


class Setting:
    def __init__(self, folder: Path) -> None:
        self.log, self.store, self.view = MemoryLog(), MemoryStore(), LiveView()
        self.archive = SqliteArchive(folder / "archive.sqlite")
        self.log.everywhere(announcement(HEALTH))

    def count(self, fleet: FleetStatement | None = None) -> Worker:
        worker = Worker(
            self.log, self.store, archive=self.archive, view=self.view, fleet=fleet, clock=lambda: 0.0
        )
        while worker.step():
            pass
        return worker

    def sealed(self, number: int, n: int, fleet: FleetStatement | None = None) -> dict[str, object]:
        """The release of a round of n reports."""
        for i in range(n):
            written = batch(segment(HEALTH, number, [(report_id(i), i % 5)]), minute=minute_of(number))
            self.log.append({i % 2: [written]})
        self.count(fleet).seal([(HEALTH.digest, number)])
        self.count(fleet)
        data = self.archive.get((HEALTH.digest, number))
        assert data is not None
        return json.loads(data)


@pytest.fixture
def setting(tmp_path: Path) -> Iterator[Setting]:
    setting = Setting(tmp_path)
    yield setting
    setting.archive.close()


def test_a_release_says_how_many_are_missing_and_how_far_that_can_bias_each_share(setting: Setting) -> None:
    fleet = FleetStatement({"self-rated-health": 200, "": 999}, budget=1.0)
    found = setting.sealed(0, 150, fleet)
    enrolment = found["enrolment"]
    assert (enrolment["enrolled"], enrolment["asked"], enrolment["budget"]) == (150, 200, 1.0)
    assert enrolment["absent"] == 0.25
    for kind in ("values", "categories"):
        ends = [[cell[end] for cell in found[kind]] for end in ("low", "high")]
        assert enrolment["bias"][kind] == selection_bound(*ends, absent=0.25, epsilon=1.0).tolist()
        assert 0 < min(enrolment["bias"][kind]) <= max(enrolment["bias"][kind]) <= 0.25
    later = setting.sealed(1, 120, fleet)["enrolment"]
    assert (later["enrolled"], later["absent"]) == (150, 0.4)


@pytest.mark.parametrize("share", [1.0, 0.6])
def test_of_devices_in_turns_the_absent_are_not_those_whose_turn_it_is_not(share: float) -> None:
    """2,000 asked, w 12: 20,000 binomial rounds; the stated share is too low in one of a hundred.

    A rate of .01 has a standard error of .0007; below .0145 is six of them above, and the law's own skew adds
    to it. Where fewer are in, the bound is wider than it need be.
    """
    survey = Survey.parse(LABELS.replace("rounds = 3", "rounds = 30\nrotation = 12"))
    fleet, source = FleetStatement({"": 2000}, 1.0), np.random.default_rng(5)
    counts = source.binomial(round(2000 * share), 1 / 12, 20_000).tolist()
    stated = {n: fleet.of(survey, counted=n, enrolled=n).absent for n in set(counts)}
    assert all(0.0 <= absent <= 1.0 for absent in stated.values())
    too_low = np.mean([stated[n] < 1 - share for n in counts])
    assert too_low == 0 if share == 1.0 else too_low < 0.0145
    assert np.mean([stated[n] for n in counts]) == pytest.approx(
        1 - share + 2.33 * (11 / 2000) ** 0.5, abs=0.01
    )
    plain = fleet.of(HEALTH, counted=1500, enrolled=1500).absent
    assert plain == 0.25
    assert fleet.of(survey, counted=2001, enrolled=2001).absent is None
    assert fleet.of(survey, counted=0, enrolled=0).absent == 1.0


def test_what_is_not_stated_or_does_not_follow_is_null(setting: Setting) -> None:
    assert setting.sealed(0, 150)["enrolment"] == {
        "enrolled": 150,
        "asked": None,
        "absent": None,
        "budget": None,
        "bias": None,
    }
    some = setting.sealed(1, 120, FleetStatement({"": 200}))["enrolment"]
    assert (some["absent"], some["bias"]) == (0.4, None)
    contradicted = setting.sealed(2, 130, FleetStatement({"": 129}, budget=2.0))["enrolment"]
    assert (contradicted["asked"], contradicted["absent"], contradicted["bias"]) == (129, None, None)


def test_a_suppressed_round_has_no_bounds_and_an_open_one_no_enrolment(setting: Setting) -> None:
    small = setting.sealed(0, 20, FleetStatement({"": 200}, budget=1.0))
    assert small["suppressed"] is True
    assert (small["enrolment"]["absent"], small["enrolment"]["bias"]) == (0.9, None)
    for i in range(5):
        written = batch(segment(HEALTH, 1, [(report_id(1000 + i), 1)]), minute=minute_of(1))
        setting.log.append({0: [written]})
    setting.count()
    (survey,) = setting.view.snapshot()["surveys"]
    assert [shown["enrolment"] is None for shown in survey["rounds"]] == [False, True]


def test_bounds_are_in_the_table_and_the_largest_on_the_page(setting: Setting) -> None:
    found = setting.sealed(0, 150, FleetStatement({"": 200}, budget=1.0))
    rows = list(csv.DictReader(io.StringIO(documents.to_csv(found).decode())))
    bounds = [*found["enrolment"]["bias"]["values"], *found["enrolment"]["bias"]["categories"]]
    assert [float(row["bias_bound"]) for row in rows] == bounds
    live = json.loads(documents.RenderedSnapshot("x", setting.view.snapshot()).live)
    assert live["surveys"][0]["shown"]["enrolment"]["bias"] == {"largest": max(bounds)}


# The archive is the authority for sealed rounds.


def rewrite(archive: SqliteArchive, document: dict[str, object]) -> None:
    """Puts another release in the place of the only one, its checksum too."""
    ((digest, number),) = archive.rounds()
    archive._db.execute("DELETE FROM release")
    archive.put((digest, number), canonical_bytes(document))


def test_a_rebuilt_store_agrees_with_a_release_of_an_older_rendering(setting: Setting) -> None:
    found = setting.sealed(0, 150)
    older = {key: value for key, value in found.items() if key not in ("enrolment", "poison_margin", "lost")}
    older["values"][0]["estimate"] *= 1 + 1e-14
    rewrite(setting.archive, older)
    setting.store = MemoryStore()
    setting.count(FleetStatement({"": 300}))
    (survey,) = setting.view.snapshot()["surveys"]
    beside = ShufflingStatements().of(HEALTH, older)
    assert survey["rounds"][0] == older | {"as_of": 150, "after_shuffling": beside}
    assert setting.archive.get(KEY) == canonical_bytes(older)
    assert documents.to_csv(survey["rounds"][0]).count(b"\r\n") == 8


@pytest.mark.parametrize("fact", ["accounting", "cut", "devices", "digest", "estimate", "label", "cells"])
def test_a_rebuilt_store_that_counts_otherwise_stops(setting: Setting, fact: str) -> None:
    other = setting.sealed(0, 150)
    if fact == "accounting":
        other["accounting"]["late"] += 1
    elif fact == "cut":
        other["cut"]["0"] += 1
    elif fact == "devices":
        other["devices"] -= 1
    elif fact == "digest":
        other["survey"]["digest"] = "0" * 32
    elif fact == "estimate":
        other["values"][1]["estimate"] += 1e-6
    elif fact == "label":
        other["values"][1]["label"] = "else"
    else:
        other["categories"].pop()
    rewrite(setting.archive, other)
    setting.store = MemoryStore()
    with pytest.raises(DivergedError, match="round 1:"):
        setting.count()


# What is stated.


@pytest.mark.parametrize(
    ("asked", "budget"), [({"": 0}, None), ({"": 1.5}, None), ({}, 0.0), ({}, float("inf"))]
)
def test_a_fleet_is_a_number_of_devices_and_a_budget(asked, budget) -> None:
    with pytest.raises(ParameterError, match="must be"):
        FleetStatement(asked, budget)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--asked", "many"], "--asked must be DEVICES or SURVEY=DEVICES"),
        (["--asked", "health=0"], "asked must be a number of devices"),
        (["--fleet-budget", "-1"], "fleet budget must be above 0"),
    ],
)
def test_a_node_refuses_what_states_no_fleet(tmp_path: Path, capsys, options, said) -> None:
    survey = tmp_path / "labels.toml"
    survey.write_text(LABELS, encoding="utf-8")
    assert main(["node", str(survey), "--data", str(tmp_path / "data"), "--port", "0", *options]) == 1
    assert said in capsys.readouterr().err
