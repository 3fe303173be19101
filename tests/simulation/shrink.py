"""A tape made shorter: the same violation with as few decisions off the ordinary as can be found."""

from __future__ import annotations

from collections.abc import Callable

MOST_RUNS = 500


def shrunk(tape: list[int], fails: Callable[[list[int]], bool], *, most_runs: int = MOST_RUNS) -> list[int]:
    """Return a tape that still fails, with stretches of it set to 0, and cut behind the last that matters.

    Args:
        tape: Decisions of a run that failed.
        fails: Return whether a run of these decisions fails.
        most_runs: How often it is asked at most.
    """
    best, runs = list(tape), 0
    length = max(len(best) // 2, 1)
    while length and runs < most_runs:
        for start in range(0, len(best), length):
            if not any(best[start : start + length]):
                continue
            tried = best[:start] + [0] * len(best[start : start + length]) + best[start + length :]
            runs += 1
            if fails(tried):
                best = tried
            if runs >= most_runs:
                break
        length //= 2
    while best and best[-1] == 0:
        best.pop()
    return best


def off_the_ordinary(tape: list[int]) -> int:
    """Return how many decisions are not 0."""
    return sum(choice != 0 for choice in tape)
