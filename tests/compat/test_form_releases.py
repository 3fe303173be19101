"""A release of every form that came after the stored formats were written keeps its bytes.

`PYTHONPATH=tests/harness .venv/bin/python tests/compat/test_form_releases.py` prints the lines of
tests/golden/form-releases.txt: the SHA-256 of a release of simulated devices, and the survey's name.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest

from hubbub import Survey
from hubbub.survey.forms import FORMS
from hubbub.testing import seeded
from hubbub_aggregator.counting.verdict_counts import VerdictCounts
from hubbub_aggregator.release import AcceptedCounts, Release
from hubbub_aggregator.release.round_release import canonical_bytes

GOLDEN = Path(__file__).parents[1] / "golden"
NEWER = ("region", "heat-map", "transition", "sets", "bundle", "key-value", "interactions")
"""Golden surveys of forms that tests/golden/formats has not."""
OLDER = {"table", "score"}
DEVICES = 4000


def survey_of(name: str) -> Survey:
    alone = name in ("sets", "bundle", "key-value", "interactions")
    return Survey.load(GOLDEN / (f"{name}.bin" if alone else f"survey-{name}.bin"))


def release(survey: Survey) -> bytes:
    told = np.random.default_rng(1).integers(0, survey.channel.inputs, DEVICES)
    if survey.form.of_sets:
        told = np.array([0, 1, 7, 26, 64], dtype=np.uint8)[told % 5, None]
    counts = survey.channel.tally(survey.channel.perturb(told, source=seeded(1)))
    tally = AcceptedCounts({0: 9}, counts, DEVICES)
    return canonical_bytes(
        Release(survey, 0, "sealed", tally, VerdictCounts(attempts=DEVICES, accepted=DEVICES)).document()
    )


def lines() -> str:
    made = {name: hashlib.sha256(release(survey_of(name))).hexdigest() for name in NEWER}
    return "".join(f"{digest}  {name}\n" for name, digest in made.items())


def test_every_newer_form_has_a_release_here() -> None:
    asked = {survey_of(name).form.to_spec()[0] for name in NEWER}
    assert asked == {each.name for each in FORMS} - OLDER


@pytest.mark.parametrize("name", NEWER)
def test_a_release_has_the_bytes_of_the_golden_file(name: str) -> None:
    kept = dict(line.split()[::-1] for line in (GOLDEN / "form-releases.txt").read_text().splitlines())
    assert hashlib.sha256(release(survey_of(name))).hexdigest() == kept[name]


if __name__ == "__main__":
    print(lines(), end="")
