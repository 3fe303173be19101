"""Local hashing, its pool of hash functions and its inverse."""

from typing import TYPE_CHECKING

from hubbub.lazy import attach

if TYPE_CHECKING:
    from hubbub.mechanisms.hashing.hash_pool import MAX_SYMBOLS
    from hubbub.mechanisms.hashing.inverse import HashInverse
    from hubbub.mechanisms.hashing.local_hashing import LocalHashing, local_hashing

__all__ = [
    "MAX_SYMBOLS",
    "HashInverse",
    "LocalHashing",
    "local_hashing",
]

attach(
    __name__,
    {
        "hubbub.mechanisms.hashing.hash_pool": ("MAX_SYMBOLS",),
        "hubbub.mechanisms.hashing.inverse": ("HashInverse",),
        "hubbub.mechanisms.hashing.local_hashing": (
            "LocalHashing",
            "local_hashing",
        ),
    },
)
