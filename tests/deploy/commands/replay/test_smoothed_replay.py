"""A replay shows the smoothed view of a number beside the unbiased one, and none where there is none."""

from __future__ import annotations

import json

import numpy as np
import surveys
from rich.console import Console

from hubbub import Survey
from hubbub.testing import seeded
from hubbub_deploy.commands.replay.csv_replay import replay
from hubbub_lab.evaluation.report import show


def test_numbers_are_shown_smoothed_beside_unbiased_and_labels_are_not(capsys):
    numbers, labels = (Survey.parse(text) for text in (surveys.DISEASES, surveys.LABELS))
    crowd = (60.0 * np.random.default_rng(2).beta(2, 5, 20_000)).tolist()
    found = replay(numbers, crowd, source=seeded(1))
    document = json.loads(json.dumps(found.as_json(), allow_nan=False))
    assert len(document["smoothed"]["values"]) == len(document["release"]["values"])
    assert np.isclose(sum(document["smoothed"]["values"]), 1.0)
    distances = document["summary"]["wasserstein"]
    assert 0.0 < distances["smoothed"] < distances["unbiased"] < 1.0
    none = replay(labels, [labels.input_labels[0]] * 500, source=seeded(1))
    assert none.as_json()["smoothed"] is None
    show([found, none], rows="most frequent", console=Console(highlight=False, width=120))
    said = capsys.readouterr().out
    assert said.count("smoothed") == 1
    assert "biased, and have no intervals" in said
