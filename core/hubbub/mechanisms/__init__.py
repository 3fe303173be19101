"""Mechanisms: functions that compile parameters to a channel of at most the epsilon asked for."""

from typing import TYPE_CHECKING

from hubbub.lazy import attach

if TYPE_CHECKING:
    from hubbub.mechanisms.category_grr import CategoryGRR
    from hubbub.mechanisms.category_weights import category_weights
    from hubbub.mechanisms.grr import GRR, grr, symmetric_weights
    from hubbub.mechanisms.hashing.hash_pool import MAX_SYMBOLS
    from hubbub.mechanisms.hashing.local_hashing import LocalHashing, local_hashing
    from hubbub.mechanisms.integers import column_epsilon, integer_rows, integerise
    from hubbub.mechanisms.levels.levels import Levels, levels
    from hubbub.mechanisms.levels.set_levels import SetLevels
    from hubbub.mechanisms.missing import with_missing
    from hubbub.mechanisms.orbits.channel import OrbitChannel
    from hubbub.mechanisms.orbits.estimator import OrbitEstimator
    from hubbub.mechanisms.orbits.integers import compiled
    from hubbub.mechanisms.orbits.short import shortest
    from hubbub.mechanisms.participation import with_dummy_reports
    from hubbub.mechanisms.pbgrr import PBGRR
    from hubbub.mechanisms.registry import channel_from_spec
    from hubbub.mechanisms.rounding import stochastic, stochastic_many
    from hubbub.mechanisms.subset import SubsetSelection, subset_selection
    from hubbub.mechanisms.tree.channel import tree
    from hubbub.mechanisms.tree.shares import PURPOSES, STEPS, Purpose, middle
    from hubbub.mechanisms.unary import Unary, Variant, unary

__all__ = [
    "GRR",
    "MAX_SYMBOLS",
    "PBGRR",
    "PURPOSES",
    "STEPS",
    "CategoryGRR",
    "Levels",
    "LocalHashing",
    "OrbitChannel",
    "OrbitEstimator",
    "Purpose",
    "SetLevels",
    "SubsetSelection",
    "Unary",
    "Variant",
    "category_weights",
    "channel_from_spec",
    "column_epsilon",
    "compiled",
    "grr",
    "integer_rows",
    "integerise",
    "levels",
    "local_hashing",
    "middle",
    "shortest",
    "stochastic",
    "stochastic_many",
    "subset_selection",
    "symmetric_weights",
    "tree",
    "unary",
    "with_dummy_reports",
    "with_missing",
]

attach(
    __name__,
    {
        "hubbub.mechanisms.category_grr": ("CategoryGRR",),
        "hubbub.mechanisms.category_weights": ("category_weights",),
        "hubbub.mechanisms.grr": (
            "GRR",
            "grr",
            "symmetric_weights",
        ),
        "hubbub.mechanisms.hashing.hash_pool": ("MAX_SYMBOLS",),
        "hubbub.mechanisms.hashing.local_hashing": (
            "LocalHashing",
            "local_hashing",
        ),
        "hubbub.mechanisms.integers": (
            "column_epsilon",
            "integer_rows",
            "integerise",
        ),
        "hubbub.mechanisms.levels.levels": (
            "Levels",
            "levels",
        ),
        "hubbub.mechanisms.levels.set_levels": ("SetLevels",),
        "hubbub.mechanisms.missing": ("with_missing",),
        "hubbub.mechanisms.orbits.channel": ("OrbitChannel",),
        "hubbub.mechanisms.orbits.estimator": ("OrbitEstimator",),
        "hubbub.mechanisms.orbits.integers": ("compiled",),
        "hubbub.mechanisms.orbits.short": ("shortest",),
        "hubbub.mechanisms.participation": ("with_dummy_reports",),
        "hubbub.mechanisms.pbgrr": ("PBGRR",),
        "hubbub.mechanisms.registry": ("channel_from_spec",),
        "hubbub.mechanisms.rounding": (
            "stochastic",
            "stochastic_many",
        ),
        "hubbub.mechanisms.subset": (
            "SubsetSelection",
            "subset_selection",
        ),
        "hubbub.mechanisms.tree.channel": ("tree",),
        "hubbub.mechanisms.tree.shares": (
            "PURPOSES",
            "Purpose",
            "STEPS",
            "middle",
        ),
        "hubbub.mechanisms.unary": (
            "Unary",
            "Variant",
            "unary",
        ),
    },
)
