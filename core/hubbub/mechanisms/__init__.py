"""Mechanisms: functions that compile parameters to a channel of at most the epsilon asked for."""

from hubbub.mechanisms.grr import GRR, grr

__all__ = ["GRR", "grr"]
