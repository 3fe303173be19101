"""Exact delta(epsilon) of continuous noise, boosted and mixed, and its composition; never on a device."""

from hubbub.lazy import attach

attach(__name__)
