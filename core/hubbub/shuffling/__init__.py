"""The privacy that shuffling among many devices adds to a report's own."""

from typing import TYPE_CHECKING

from hubbub.lazy import attach

if TYPE_CHECKING:
    from hubbub.shuffling.epsilon import epsilon_after_shuffling

__all__ = ["epsilon_after_shuffling"]

attach(
    __name__,
    {
        "hubbub.shuffling.epsilon": ("epsilon_after_shuffling",),
    },
)
