"""A long replay says how far it is, and every report is in what it says."""

from __future__ import annotations

import contextlib

import pytest
import surveys

from hubbub import Survey
from hubbub.testing import seeded
from hubbub.wire import SurveyRecord, encode_record
from hubbub_deploy.commands.replay import csv_replay, log_count, log_replay
from hubbub_deploy.errors import DeployError
from hubbub_deploy.node import LOG_FILE
from hubbub_topic import SqliteLog


def test_progress_grows_to_the_number_of_devices():
    survey = Survey.parse(surveys.LABELS)
    told: list[tuple[int, int]] = []
    devices = 5_200
    csv_replay.replay(
        survey,
        [survey.input_labels[0]] * devices,
        source=seeded(3),
        progress=lambda done, all_of_them: told.append((done, all_of_them)),
    )
    done = [each for each, _ in told]
    assert done == sorted(set(done)) and len(done) >= 8  # a record holds 1,000 of some 1,300 in a partition
    assert told[-1] == (devices, devices)


def test_of_a_rotating_survey_those_are_replayed_whose_turn_it_is():
    survey = Survey.parse(surveys.LABELS.replace("rounds = 3", "rounds = 30\nrotation = 12"))
    held = [survey.input_labels[i % 2] for i in range(4_800)]
    told: list[tuple[int, int]] = []
    found = csv_replay.replay(
        survey, held, source=seeded(3), progress=lambda done, devices: told.append((done, devices))
    )
    counted = found.release["devices"]
    assert 300 < counted < 500  # 5 standard errors of 19 about 400
    assert told[-1] == (counted, counted)
    assert found.truth.values[:2].sum() == pytest.approx(1.0)
    assert found.truth.values[0] * counted == pytest.approx(round(found.truth.values[0] * counted))
    with pytest.raises(DeployError, match="must have a device whose turn the first of 12 rounds is"):
        csv_replay.replay(survey, held[:1], source=seeded(3))


def test_a_line_comes_every_so_many_reports(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(csv_replay, "TOLD_REPORTS", 1_500)
    survey = Survey.parse(surveys.LABELS)
    (tmp_path / "s.toml").write_text(surveys.LABELS)
    name, label = survey.attributes[0].id, survey.input_labels[0]
    (tmp_path / "p.csv").write_text("\n".join([name, *[label] * 4_000]) + "\n")
    settings = csv_replay.ReplaySettings(csv=tmp_path / "p.csv", surveys=(tmp_path / "s.toml",), seed=1)
    assert csv_replay.run(settings) == 0
    lines = [line for line in capsys.readouterr().err.splitlines() if line.endswith("reports counted")]
    assert len(lines) == 2
    assert all(line.startswith(f"{survey.title}: ") and "of 4,000" in line for line in lines)


def test_a_log_that_is_counted_again_says_how_far_it_is(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(log_replay, "TOLD_RECORDS", 100)
    announced = encode_record(SurveyRecord(Survey.parse(surveys.LABELS).canonical))
    with contextlib.closing(SqliteLog(tmp_path / LOG_FILE, partitions=2)) as log:
        log.append({0: [announced] * 250, 1: [announced] * 70})
    told: list[tuple[int, int]] = []
    log_count.counted(str(tmp_path), lambda *done: told.append(done))
    assert told == sorted(set(told)) and told[-1] == (320, 320)
    assert log_replay.run(log_replay.LogReplaySettings(source=str(tmp_path))) == 0
    lines = [line for line in capsys.readouterr().err.splitlines() if line.endswith("records counted")]
    assert [line.split()[2] for line in lines] == ["320"] * 3
