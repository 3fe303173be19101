"""Left inverses of channels: blocks, dense matrices, and which fits which channel."""

from hubbub.lazy import attach

attach(__name__)
