"""The least error that any epsilon-LDP mechanism can have; `programme` has the proof."""

from hubbub.lazy import attach

attach(__name__)
