"""Cumulative shares and quartiles in releases: of trees, and of nothing else."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import numpy as np
import pytest
from surveys import LABELS, VISITS

from hubbub.survey.survey import Survey
from hubbub.testing import seeded
from hubbub_aggregator.counting.verdict_counts import VerdictCounts
from hubbub_aggregator.release.provisional import AcceptedCounts
from hubbub_aggregator.release.round_release import Release, canonical_bytes
from hubbub_aggregator.web.documents import without_suppressed

HEAD = VISITS.partition("[mechanism]")[0]
KEYS = {"cumulative", "quantiles"}


def asked(mechanism: str) -> Survey:
    return Survey.parse(f"{HEAD}[mechanism]\n{mechanism}")


def document(survey: Survey, per_input: int) -> dict[str, Any]:
    inputs = np.repeat(np.arange(survey.channel.inputs), per_input)
    drawn = survey.channel.perturb(inputs, source=seeded(9))
    counts, n = survey.channel.tally(drawn), inputs.size
    verdicts = VerdictCounts(attempts=n, accepted=n)
    made = Release(survey, 0, "sealed", AcceptedCounts({0: 1}, counts, n), verdicts).document()
    found: dict[str, Any] = json.loads(canonical_bytes(made))
    return found


@pytest.mark.parametrize("mechanism", ['name = "tree"', 'name = "tree"\noracles = "grr"\nbranching = 4'])
def test_release_of_a_tree_has_the_curve_its_band_and_the_quartiles(mechanism: str) -> None:
    """The curve is the running sum of the values over those with a value; quartiles by hand from the band."""
    survey = asked(mechanism)
    found = document(survey, 120)
    values = [cell["estimate"] for cell in found["values"]]
    held = sum(values[:-1])
    curve = found["cumulative"]
    assert curve["points"] == [float(cell["label"]) for cell in found["values"][:-1]]
    np.testing.assert_allclose(curve["shares"], np.cumsum(values[:-1]) / held, rtol=1e-9, atol=1e-12)
    assert curve["level"] == found["level"] == 0.95
    for name in ("low", "high"):
        assert (np.diff(curve[name]) >= 0).all()
        assert min(curve[name]) >= 0.0
        assert max(curve[name]) == 1.0
    assert [each["share"] for each in found["quantiles"]] == [0.25, 0.5, 0.75]
    for each in found["quantiles"]:
        share, last = each["share"], len(curve["points"]) - 1
        allowed = [
            point
            for v, point in enumerate(curve["points"])
            if curve["high"][v] >= share and (v == 0 or curve["low"][v - 1] <= share)
        ]
        assert (each["low"], each["high"]) == (min(allowed), max(allowed))
        assert each["low"] <= each["estimate"] <= each["high"]
        assert last > 0


LONG = HEAD.replace("high = 20", "high = 600").replace("minimum_cohort = 100", "minimum_cohort = 50")


def made_of(devices: int) -> dict[str, Any]:
    """A release of so many devices of a tree of 602 inputs."""
    survey = Survey.parse(f'{LONG}[mechanism]\nname = "tree"\n')
    drawn = survey.channel.perturb(np.arange(devices) * 7 % survey.channel.inputs, source=seeded(9))
    tally = AcceptedCounts({0: 1}, survey.channel.tally(drawn), devices)
    verdicts = VerdictCounts(attempts=devices, accepted=devices)
    return Release(survey, 0, "sealed", tally, verdicts).document()


def test_a_round_of_fewer_devices_than_half_the_inputs_states_no_curve() -> None:
    few, enough = made_of(300), made_of(301)
    assert len(few["values"]) == 602
    assert few["cumulative"] is None and few["quantiles"] == []
    assert enough["cumulative"] is not None and len(enough["quantiles"]) == 3


FEW = (
    VISITS.partition("[attribute]")[0].replace("minimum_cohort = 100", "minimum_cohort = 1")
    + '[attribute]\nid = "d"\nkind = "static"\ntype = "number"\nlow = 0.0\nhigh = 1.0\n'
    '[mechanism]\nname = "tree"\npoints = 3\noracles = "grr"\nparticipation = 0.3\n'
)


def test_a_round_of_very_few_answers_is_released_whatever_they_were_asked_about() -> None:
    """A release says nothing of the values if nobody was asked about the finest level, and is no fault."""
    survey = Survey.parse(FEW)
    said = Counter[bool]()
    for seed in range(16):
        values = np.arange(2)
        tally = survey.channel.tally(survey.channel.perturb(values, source=seeded(seed)))
        verdicts = VerdictCounts(attempts=2, accepted=2)
        made = Release(survey, 0, "sealed", AcceptedCounts({0: 1}, tally, 2), verdicts).document()
        found = json.loads(canonical_bytes(made))
        (known,) = {cell["estimate"] is not None for cell in found["values"]}
        if not known:
            assert found["cumulative"] is None and found["quantiles"] == []
        said[known] += 1
    assert said[False] > 0 and said[True] > 0


def test_suppressed_release_of_a_tree_has_neither() -> None:
    survey = asked('name = "tree"')
    shown = document(survey, 120)
    assert document(survey, 1)["suppressed"]
    for hidden in (document(survey, 1), without_suppressed({**shown, "suppressed": True})):
        assert hidden["cumulative"] is None
        assert hidden["quantiles"] == []


@pytest.mark.parametrize("text", [LABELS, VISITS, f'{HEAD}[mechanism]\nname = "subset"'])
def test_releases_of_other_mechanisms_have_no_new_keys(text: str) -> None:
    survey = Survey.parse(text)
    assert not KEYS & document(survey, 120).keys()
    assert not KEYS & document(survey, 1).keys()
