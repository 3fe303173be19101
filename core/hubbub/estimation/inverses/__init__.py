"""Left inverses of channels: blocks, dense matrices, and which fits which channel."""
