"""Mechanisms: functions that compile parameters to a channel of at most the epsilon asked for."""

from hubbub.lazy import attach

attach(__name__)
