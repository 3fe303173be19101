"""Mechanisms: functions that compile parameters to a channel of at most the epsilon asked for."""

from hubbub.mechanisms.grr import GRR, grr
from hubbub.mechanisms.pbgrr import PBGRR, CategoryGRR, pbgrr

__all__ = ["GRR", "PBGRR", "CategoryGRR", "grr", "pbgrr"]
