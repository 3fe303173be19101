"""Mechanisms: functions that compile parameters to a channel of at most the epsilon asked for."""

from hubbub.mechanisms.boosted import Absolute, Boosted, Fixed, boosted
from hubbub.mechanisms.grr import GRR, grr
from hubbub.mechanisms.integers import integerise
from hubbub.mechanisms.pbgrr import PBGRR, CategoryGRR, pbgrr

__all__ = [
    "GRR",
    "PBGRR",
    "Absolute",
    "Boosted",
    "CategoryGRR",
    "Fixed",
    "boosted",
    "grr",
    "integerise",
    "pbgrr",
]
