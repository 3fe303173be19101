"""The way from a TOML file to a compiled survey; never on a device."""

from hubbub.lazy import attach

attach(__name__)
