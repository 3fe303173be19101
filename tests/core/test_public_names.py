"""Names that others build on may not go away; other packages' lists are held elsewhere."""

from __future__ import annotations

import importlib

import pytest

# More may be added; to take one away is a breaking change and a line in CHANGELOG.md.
KEPT = {
    "hubbub.estimation": {"Consistent", "Estimate", "Estimator", "Intervals"},
    "hubbub.mechanisms": {"grr", "integerise", "levels", "tree", "unary"},
    "hubbub_authoring.mechanisms": {"Absolute", "Fixed", "boosted", "grr", "integerise", "pbgrr"},
}
PACKAGES = ["hubbub", "hubbub.filter", "hubbub_client", "hubbub_collector", *KEPT]


@pytest.mark.parametrize("name", PACKAGES)
def test_every_listed_name_exists_once(name: str) -> None:
    package = importlib.import_module(name)
    assert len(set(package.__all__)) == len(package.__all__)
    assert [listed for listed in package.__all__ if not hasattr(package, listed)] == []
    assert [listed for listed in package.__all__ if listed.startswith("_") and listed != "__version__"] == []


@pytest.mark.parametrize("name", KEPT)
def test_names_that_others_build_on_stay(name: str) -> None:
    assert KEPT[name] <= set(importlib.import_module(name).__all__)


def test_an_estimate_keeps_its_names() -> None:
    estimation = importlib.import_module("hubbub.estimation")
    methods = {"intervals", "simultaneous", "consistent"}
    assert methods <= set(dir(estimation.Estimate))
    fields = {"values", "value_errors", "categories", "category_errors", "mean", "mean_error"}
    assert fields <= set(estimation.Estimate.__dataclass_fields__) | set(dir(estimation.Estimate))
