"""The arithmetic of the plan: costs of two measurements, a day with its peak, how far counting is behind."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

BENCH = Path(__file__).parents[2] / "bench"


@pytest.fixture(scope="module")
def scale() -> Iterator[ModuleType]:
    before, known = list(sys.path), set(sys.modules)
    sys.path.insert(0, str(BENCH))
    import scale

    yield scale
    sys.path[:] = before
    for name in ("scale", "kafka", "collector", "servers", "run", "filters"):
        if name not in known:
            sys.modules.pop(name, None)


def test_costs_are_those_that_both_measurements_have(scale: ModuleType) -> None:
    each, report = scale.fitted((2.0, 10, 100), (5.0, 10, 400))
    assert (each, report) == pytest.approx((0.1, 0.01))
    assert scale.Cost(each, report).cores(30, 7) == pytest.approx(3.07)
    assert scale.fitted((2.0, 10, 100), (1.0, 10, 400)).report == 0.0


def test_a_day_has_its_mean_and_the_stated_peak(scale: ModuleType) -> None:
    rates = scale.rates(100.0)
    assert len(rates) == 24 * 60
    assert rates.mean() == pytest.approx(100)
    assert rates.max() == pytest.approx(500)
    assert rates.argmax() == 20 * 60


def test_counting_is_behind_by_what_the_absent_one_leaves(scale: ModuleType) -> None:
    rates = scale.rates(100.0)
    assert scale.worst_lag(rates, 500.0, lambda _: False, 2) == 0.0
    # Half of 500 a second in the hour around the peak: 60 s x 60 x (500 - 250) / 250, less beside it.
    behind = scale.worst_lag(rates, 500.0, lambda minute: 1170 <= minute < 1230, 2)
    assert 3400 < behind <= 3600
