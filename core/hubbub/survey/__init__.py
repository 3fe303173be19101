"""The survey, its domains and forms, its canonical bytes and signed lists."""

from hubbub.lazy import attach

attach(__name__)
