"""Bad parameters, from survey files and from Python: each names its rule, and what would do."""

from __future__ import annotations

import pytest
import surveys

from hubbub import Survey, SurveyError
from hubbub.errors import ParameterError
from hubbub_authoring import mechanisms as m
from hubbub_authoring.design import Objective
from hubbub_lab.continuous_noise.boost import AbsoluteRegion, FixedRegion, RelativeRegion, boost_for
from hubbub_lab.continuous_noise.noise import Gaussian

NUMBER = surveys.DISEASES.split("[mechanism]")[0] + "[mechanism]\n"  # epsilon 2, a number from 0 to 60
FIXED = 'name = "boosted"\npoints = 31\nkernel = "laplace"\nregion = "fixed"\n'
SPLIT = 'name = "boosted"\npoints = 31\nkernel = "laplace"\nhalf_width = 4.0\nkernel_epsilon = 2.0\n'


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ('name = "boosted"\npoints = 31\nhalf_width = -1.0', "half_width: must be .* from 0 to 60, got -1.0"),
        ('name = "boosted"\npoints = 31\nhalf_width = 61.0', "half_width: must be .* from 0 to 60, got 61.0"),
        (
            'name = "boosted"\npoints = 31\nregion = "relative"\nshare = -0.5\nhalf_width = 1.0',
            "share: must be .* from 0 .*, got -0.5",
        ),
        (FIXED + "low = 70.0\nhigh = 80.0", "low: must be at most the attribute's high, 60, got 70.0"),
        (FIXED + "low = -9.0\nhigh = -1.0", "high: must be at least the attribute's low, 0, got -1.0"),
        (FIXED + "low = 30.0\nhigh = 20.0", "low: must be at most mechanism.high, 20, got 30.0"),
        ('name = "boosted"\npoints = 31\nboost = 1.5', "boost: must be .* from 0 to 1, got 1.5"),
        (SPLIT + "boost = 0.9", "boost must be at most 0.864665 to keep within epsilon, got 0.9"),
        ('name = "r2dp"\npoints = 31\nwithin = -2.0', "within: must be .* from 0 to 60, got -2.0"),
        ('name = "auto"\nobjective = "hit"', "within: must be given for the objective hit"),
        ('name = "auto"\nobjective = "hit"\nwithin = -1.0', "within: must be .* from 0 .*, got -1.0"),
        ('name = "auto"\nobjective = "hit"\nwithin = 0.0', "within must be a positive finite distance"),
        ('name = "auto"\nwithin = 1.0', "within: must be absent unless the objective is hit, got 1.0"),
        ('name = "auto"\nobjective = "median"', "objective: must be one of value, .*, hit, got 'median'"),
    ],
)
def test_a_survey_file_is_refused_by_key_rule_and_value(keys, said):
    with pytest.raises(SurveyError, match=said):
        Survey.parse(f"{NUMBER}{keys}\n")


def hits(region):
    return m.boosted(9, epsilon=1.0, region=region, objective="hits")


@pytest.mark.parametrize(
    ("build", "said"),
    [
        (lambda: hits(m.Absolute(-1.0)), r"half_width .* \[0, .*got -1.0"),
        (lambda: hits(m.Relative(-0.1, 1.0)), r"region.share .*got -0.1"),
        (lambda: hits(m.Fixed(20.0, 30.0)), "region must meet the values, 0 to 8, got 20.0 to 30.0"),
        (lambda: boost_for(Gaussian(1.0), AbsoluteRegion(1.0), 1.0), "strictly between 0 and 1, got 1.0"),
        (lambda: AbsoluteRegion(-0.5), "half_width .* at least 0, got -0.5"),
        (lambda: RelativeRegion(0.1, -0.5), "half_width .* at least 0, got -0.5"),
        (lambda: FixedRegion(2.0, 1.0), "must be below its high, got 2.0 and 1.0"),
        (lambda: Objective("hit", within=-1.0), "within must be a positive finite distance, got -1.0"),
    ],
)
def test_python_is_refused_by_subject_rule_and_value(build, said):
    with pytest.raises(ParameterError, match=said):
        build()
