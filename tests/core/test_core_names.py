"""The names that others build on; a change here is a breaking change and a line in CHANGELOG.md."""

from __future__ import annotations

import importlib.metadata
import subprocess
import sys

import numpy as np
import pytest

import hubbub


def test_public_names_are_these_and_exist():
    assert hubbub.__all__ == [
        "Attribute",
        "BudgetError",
        "Channel",
        "Estimate",
        "Estimator",
        "HubbubError",
        "ParameterError",
        "Survey",
        "SurveyError",
        "WireError",
        "__version__",
        "filter",
        "mechanisms",
        "testing",
    ]
    for name in hubbub.__all__:
        assert getattr(hubbub, name) is not None


def test_the_version_is_that_of_what_is_installed():
    assert hubbub.__version__ == importlib.metadata.version("hubbub")


def test_an_estimate_offers_what_is_promised():
    estimate = hubbub.estimation.estimator_for(hubbub.mechanisms.grr(3, epsilon=1.0))(np.array([5, 3, 2]), 10)
    assert isinstance(estimate, hubbub.Estimate)
    assert estimate.mean is estimate.mean_error is None
    for promised in (estimate.values, estimate.value_errors, estimate.poison_margin(0.95).values):
        assert promised.shape == (3,)
    assert estimate.categories.shape == estimate.category_errors.shape == (3,)
    assert (estimate.intervals(0.95).values_high <= estimate.simultaneous(0.95).values_high).all()
    assert estimate.consistent().values.sum() == pytest.approx(1.0)


def test_import_brings_no_server_library_network_or_database():
    code = (
        "import sys, hubbub, hubbub.estimation, hubbub.wire.record\n"
        "unwanted = ('scipy', 'starlette', 'sqlite3', 'urllib3', 'asyncio', 'http.client')\n"
        "print(*(module for module in unwanted if module in sys.modules))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.split() == []
