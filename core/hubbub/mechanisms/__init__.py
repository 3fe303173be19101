"""Mechanisms: functions that compile parameters to a channel of at most the epsilon asked for."""

from hubbub.mechanisms.boosted import Absolute, Boosted, Fixed, Relative, boosted, brdp
from hubbub.mechanisms.grr import GRR, grr
from hubbub.mechanisms.integers import integerise
from hubbub.mechanisms.levels import Levels, SetLevels, levels
from hubbub.mechanisms.local_hashing import LocalHashing, local_hashing
from hubbub.mechanisms.neighbourhood import Neighbourhood, neighbourhood
from hubbub.mechanisms.one_number import OneNumber, duchi, hybrid, piecewise, square_wave
from hubbub.mechanisms.pbgrr import PBGRR, CategoryGRR, pbgrr
from hubbub.mechanisms.r2dp import r2dp
from hubbub.mechanisms.scale_laws import Gamma, ScaleLaw, TruncatedGaussian, TwoPoint, Uniform
from hubbub.mechanisms.subset import SubsetSelection, subset_selection
from hubbub.mechanisms.unary import Unary, unary

__all__ = [
    "GRR",
    "PBGRR",
    "Absolute",
    "Boosted",
    "CategoryGRR",
    "Fixed",
    "Gamma",
    "Levels",
    "LocalHashing",
    "Neighbourhood",
    "OneNumber",
    "Relative",
    "ScaleLaw",
    "SetLevels",
    "SubsetSelection",
    "TruncatedGaussian",
    "TwoPoint",
    "Unary",
    "Uniform",
    "boosted",
    "brdp",
    "duchi",
    "grr",
    "hybrid",
    "integerise",
    "levels",
    "local_hashing",
    "neighbourhood",
    "pbgrr",
    "piecewise",
    "r2dp",
    "square_wave",
    "subset_selection",
    "unary",
]
