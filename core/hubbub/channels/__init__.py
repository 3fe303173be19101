"""Channels that mechanisms compile to: finite ones, sets, their divergences and descriptions."""

from typing import TYPE_CHECKING

from hubbub.lazy import attach

if TYPE_CHECKING:
    from hubbub.channels.channel import MAX_INPUTS, MAX_WEIGHTS, Channel
    from hubbub.channels.designed import CurveChannel, WeightedChannel
    from hubbub.channels.divergence import (
        MAX_BLOCKS,
        UNIT,
        UNITS_PER_NAT,
        BlockDivergence,
        Detail,
        fixed_up,
        log_floor,
        log_floor_of,
    )
    from hubbub.channels.finite import DenseChannel, FiniteChannel, Symbols
    from hubbub.channels.partition import Partition
    from hubbub.channels.sets import (
        CELLS,
        WORD,
        AttemptChannel,
        Attempts,
        Level,
        SetChannel,
        Sets,
        Support,
        sizes_of,
    )
    from hubbub.channels.spec import SpecValue, check_spec_keys, spec_int, spec_ints
    from hubbub.channels.symbols import MAX_SYMBOL_BYTES, SparseColumn, Symbol

__all__ = [
    "CELLS",
    "MAX_BLOCKS",
    "MAX_INPUTS",
    "MAX_SYMBOL_BYTES",
    "MAX_WEIGHTS",
    "UNIT",
    "UNITS_PER_NAT",
    "WORD",
    "AttemptChannel",
    "Attempts",
    "BlockDivergence",
    "Channel",
    "CurveChannel",
    "DenseChannel",
    "Detail",
    "FiniteChannel",
    "Level",
    "Partition",
    "SetChannel",
    "Sets",
    "SparseColumn",
    "SpecValue",
    "Support",
    "Symbol",
    "Symbols",
    "WeightedChannel",
    "check_spec_keys",
    "fixed_up",
    "log_floor",
    "log_floor_of",
    "sizes_of",
    "spec_int",
    "spec_ints",
]

attach(
    __name__,
    {
        "hubbub.channels.channel": (
            "Channel",
            "MAX_INPUTS",
            "MAX_WEIGHTS",
        ),
        "hubbub.channels.designed": (
            "CurveChannel",
            "WeightedChannel",
        ),
        "hubbub.channels.divergence": (
            "BlockDivergence",
            "Detail",
            "MAX_BLOCKS",
            "UNIT",
            "UNITS_PER_NAT",
            "fixed_up",
            "log_floor",
            "log_floor_of",
        ),
        "hubbub.channels.finite": (
            "DenseChannel",
            "FiniteChannel",
            "Symbols",
        ),
        "hubbub.channels.partition": ("Partition",),
        "hubbub.channels.sets": (
            "AttemptChannel",
            "Attempts",
            "CELLS",
            "Level",
            "SetChannel",
            "Sets",
            "Support",
            "WORD",
            "sizes_of",
        ),
        "hubbub.channels.spec": (
            "SpecValue",
            "check_spec_keys",
            "spec_int",
            "spec_ints",
        ),
        "hubbub.channels.symbols": (
            "MAX_SYMBOL_BYTES",
            "SparseColumn",
            "Symbol",
        ),
    },
)
