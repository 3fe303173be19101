"""The least cohort: by exact laws, by silent levels, and as the default of a survey file."""

from __future__ import annotations

import numpy as np
import pytest
from surveys import LABELS, VISITS

from hubbub import Survey
from hubbub.estimation import estimator_for
from hubbub.mechanisms import grr, levels, subset_selection
from hubbub_authoring.design import cohort_widths, least_cohort
from hubbub_authoring.design.cohort import LEAST, SILENT


@pytest.mark.parametrize("inputs", [5, 91, 1000])
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0])
def test_intervals_of_randomised_response_hold_from_fifty_devices_on(inputs: int, epsilon: float) -> None:
    assert least_cohort(estimator_for(grr(inputs, epsilon=epsilon))) == LEAST == 50


def test_a_level_that_few_report_about_asks_for_more_devices() -> None:
    estimator = estimator_for(levels([9] * 10 + [1], epsilon=1.0, shares=[0.02, 0.98]))
    least = least_cohort(estimator)
    assert 0.98**least <= SILENT / 2 < 0.98 ** (least - 1)


def test_widths_shrink_with_the_devices_and_are_those_of_the_expected_round() -> None:
    estimator = estimator_for(subset_selection(20, epsilon=1.0), points=np.arange(20.0))
    small, large = cohort_widths(estimator, 50, inputs=20), cohort_widths(estimator, 50_000, inputs=20)
    spans = estimator.expected_estimate(np.full(20, 0.05), 50).intervals()
    assert small.value == pytest.approx(float(np.mean(spans.values_high - spans.values_low)))
    for wide, narrow in ((small.value, large.value), (small.mean, large.mean)):
        assert wide is not None
        assert narrow is not None
        assert narrow < wide / 5
    assert cohort_widths(estimator_for(grr(4, epsilon=1.0)), 50, inputs=4).mean is None


@pytest.mark.parametrize("text", [LABELS, VISITS])
def test_a_file_without_a_minimum_cohort_has_the_least_one(text: str) -> None:
    lines = [line for line in text.splitlines() if not line.startswith("minimum_cohort")]
    assert len(lines) == len(text.splitlines()) - 1
    survey = Survey.parse("\n".join(lines))
    assert survey.minimum_cohort == least_cohort(survey.estimator())
    # Control: one that states its own keeps it, and with it every byte.
    assert Survey.parse(text).minimum_cohort == 100
