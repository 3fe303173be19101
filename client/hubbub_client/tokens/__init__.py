"""One-time tokens of a device: asked for blindly, a fixed number per period, spent one with each report."""

from hubbub.lazy import attach

attach(__name__)
