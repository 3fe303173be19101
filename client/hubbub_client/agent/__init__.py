"""The agent: enrol, answer, correct and close, on one device."""

from hubbub.lazy import attach

attach(__name__)
