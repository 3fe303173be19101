"""Sources of randomness that repeat, for simulations and tests only.

Nothing that sends a real report may be given one: anyone who knows the seed could draw its
symbols again.
"""

from __future__ import annotations

import numpy as np

from hubbub.errors import ParameterError


class SeededSource:
    """A stream of bytes that follows from a seed: PCG64, not secure by any measure.

    Attributes:
        seed: The seed.
    """

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self._generator = np.random.PCG64(seed)
        self._rest = b""

    def token_bytes(self, n: int, /) -> bytes:
        """Return the next n bytes of the stream, whatever the sizes in which it was read before."""
        rest = self._rest
        if n > len(rest):
            words = (n - len(rest) + 7) // 8
            rest += self._generator.random_raw(max(words, 32)).astype("<u8").tobytes()
        self._rest = rest[n:]
        return rest[:n]


class RecordedSource:
    """A stream of bytes given in advance, to show what exactly a draw reads.

    Attributes:
        left: The bytes not read yet.
    """

    def __init__(self, data: bytes) -> None:
        self.left = data

    def token_bytes(self, n: int, /) -> bytes:
        """Return the next n bytes.

        Raises:
            ParameterError: If fewer are left.
        """
        if n > len(self.left):
            raise ParameterError(f"a recorded source must hold {n} more bytes, got {len(self.left)}")
        taken, self.left = self.left[:n], self.left[n:]
        return taken


def seeded(seed: int) -> SeededSource:
    """Return a repeatable source of bytes, for simulations and tests only.

    Args:
        seed: Any integer >= 0.

    Raises:
        ParameterError: If the seed is negative or not an integer.

    >>> seeded(7).token_bytes(4) == seeded(7).token_bytes(4)
    True
    """
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        raise ParameterError(f"a seed must be an integer of at least 0, got {seed!r}")
    return SeededSource(seed)
