"""Trees for numbers: a device reports the node of its value at one level of a tree of ranges."""

from typing import TYPE_CHECKING

from hubbub.lazy import attach

if TYPE_CHECKING:
    from hubbub.mechanisms.tree.channel import TreeChannel, tree
    from hubbub.mechanisms.tree.shares import Purpose, best_shares, cells_of

__all__ = ["Purpose", "TreeChannel", "best_shares", "cells_of", "tree"]

attach(
    __name__,
    {
        "hubbub.mechanisms.tree.channel": ("TreeChannel", "tree"),
        "hubbub.mechanisms.tree.shares": ("Purpose", "best_shares", "cells_of"),
    },
)
