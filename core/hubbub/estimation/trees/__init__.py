"""Trees of levels: one fit over all of them, and the variances of what it says, in O(K)."""

from typing import TYPE_CHECKING

from hubbub.lazy import attach

if TYPE_CHECKING:
    from hubbub.estimation.trees.tree import Moments, Tree, added_up

__all__ = ["Moments", "Tree", "added_up"]

attach(__name__, {"hubbub.estimation.trees.tree": ("Moments", "Tree", "added_up")})
