"""An audit of a mechanism from its outputs alone: a lower bound on epsilon, with its false-alarm probability.

For two inputs x and x', epsilon-LDP bounds every event S by P(S | x) <= e^epsilon P(S | x'). So an event
whose frequencies on fresh samples lie farther apart shows that epsilon is larger. The event is chosen on
other samples than it is counted on; both probabilities are bounded by exact binomial intervals (Clopper and
Pearson, Biometrika 26, 1934), and the false-alarm probability is shared out over all events that are
counted. The bound is from below: it says nothing about events that nobody looked for.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from hubbub.errors import ParameterError

Sampler: TypeAlias = Callable[[int, int], Sequence[Any]]
"""From an input and a number n to n outputs: numbers, bytes, or whatever can be compared."""

Score: TypeAlias = Callable[[Sequence[Any]], NDArray[np.float64]]
"""From outputs to one number each, high where the first input is likelier."""

MOST_THRESHOLDS: Final = 200
MAX_BITS: Final = 4096


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of an audit.

    Attributes:
        epsilon: The lower bound: the mechanism's epsilon is at least so large, but for `false_alarm`.
        pair: The two inputs that were told apart best.
        event: The event in words.
        probabilities: Its share of fresh samples under the two inputs.
        samples: Fresh samples of each input.
        false_alarm: The probability with which the bound is above the mechanism's epsilon.
    """

    epsilon: float
    pair: tuple[int, int]
    event: str
    probabilities: tuple[float, float]
    samples: int
    false_alarm: float


def audit(
    sampler: Sampler,
    pairs: Sequence[tuple[int, int]],
    *,
    samples: int = 100_000,
    false_alarm: float = 1e-6,
    likelihood: Callable[[Any, int], float] | None = None,
) -> Finding:
    """Return a lower bound on the epsilon of a mechanism, from what it sends.

    Args:
        sampler: The mechanism.
        pairs: Inputs to tell apart, in both directions.
        samples: How many outputs of each input are counted; as many more choose the events.
        false_alarm: The probability with which the bound may be above the truth.
        likelihood: The log-likelihood of an output under an input, as the mechanism's makers state it, up to
            a constant for each output. It only proposes events: a wrong one weakens the bound, no more.

    Raises:
        ParameterError: If there is no pair, a pair is of one input, or a number is out of range.
    """
    if not pairs or any(one == other for one, other in pairs):
        raise ParameterError(f"an audit must have pairs of two different inputs, got {list(pairs)}")
    if samples < 100:
        raise ParameterError(f"samples must be at least 100, got {samples}")
    if not 0.0 < false_alarm < 1.0:
        raise ParameterError(f"false_alarm must be in (0, 1), got {false_alarm!r}")
    counted: list[tuple[tuple[int, int], str, int, int]] = []
    for one, other in pairs:
        first, second = sampler(one, samples), sampler(other, samples)
        fresh = sampler(one, samples), sampler(other, samples)
        for name, score in _scores(first, second, (one, other), likelihood):
            rows = score(first), score(second), score(fresh[0]), score(fresh[1])
            swapped = rows[1], rows[0], rows[3], rows[2]
            for pair, known in (((one, other), rows), ((other, one), swapped)):
                for sign, side in ((1.0, "at least"), (-1.0, "at most")):
                    least = _threshold(sign * known[0], sign * known[1])
                    hits, misses = (int(np.count_nonzero(sign * row >= least)) for row in known[2:])
                    counted.append((pair, f"{name} {side} {sign * least:.4g}", hits, misses))
    each = false_alarm / (2 * len(counted))
    found = []
    for pair, event, hits, misses in counted:
        low = float(stats.beta.ppf(each, hits, samples - hits + 1)) if hits else 0.0
        high = float(stats.beta.ppf(1.0 - each, misses + 1, samples - misses)) if misses < samples else 1.0
        bound = math.log(low / high) if low > 0.0 else 0.0
        found.append((max(bound, 0.0), pair, event, (hits / samples, misses / samples)))
    best = max(found)
    return Finding(*best, samples, false_alarm)


def _threshold(first: NDArray[np.float64], second: NDArray[np.float64]) -> float:
    """Return the score from which on an event tells two inputs apart best, on the samples that choose it."""
    known = np.unique(np.concatenate([first, second]))
    if len(known) > MOST_THRESHOLDS:
        known = np.unique(np.quantile(known, np.linspace(0.0, 1.0, MOST_THRESHOLDS)))
    n = len(first)
    hits = n - np.searchsorted(np.sort(first), known)
    misses = n - np.searchsorted(np.sort(second), known)
    # The bound that these counts would give at a moderate confidence, so that no rare event is chosen.
    low = stats.beta.ppf(1e-4, np.maximum(hits, 1), n - hits + 1)
    high = stats.beta.ppf(1.0 - 1e-4, misses + 1, np.maximum(n - misses, 1))
    return float(known[int(np.argmax(np.where(hits > 0, low / high, 0.0)))])


def _scores(
    first: Sequence[Any],
    second: Sequence[Any],
    pair: tuple[int, int],
    likelihood: Callable[[Any, int], float] | None,
) -> Iterator[tuple[str, Score]]:
    """Yield what outputs may be told apart by: their frequencies, their bits, and what is stated of them."""
    one = first[0]
    if isinstance(one, bytes | bytearray | np.ndarray | list | tuple):
        bits = _bits(first)
        if bits is not None and bits.shape[1] <= MAX_BITS:
            yield "sum over the bits of log-ratios", _bit_score(bits, _bits(second))
        yield "log-ratio of frequencies", _frequency_score(first, second)
    else:
        yield "log-ratio of frequencies", _frequency_score(first, second)
        if isinstance(one, float):
            yield "output", lambda outputs: np.asarray(outputs, dtype=np.float64)
    if likelihood is not None:
        stated = likelihood

        def score(outputs: Sequence[Any]) -> NDArray[np.float64]:
            different = {_key(output): output for output in outputs}
            known = {key: stated(each, pair[0]) - stated(each, pair[1]) for key, each in different.items()}
            return np.array([known[_key(output)] for output in outputs])

        yield "stated log-ratio", score


def _key(output: Any) -> Hashable:  # noqa: ANN401 - of whichever type the mechanism sends
    if isinstance(output, np.ndarray):
        return output.tobytes()
    return tuple(output) if isinstance(output, list) else output


def _frequency_score(first: Sequence[Any], second: Sequence[Any]) -> Score:
    ours, others = Counter(map(_key, first)), Counter(map(_key, second))

    def score(outputs: Sequence[Any]) -> NDArray[np.float64]:
        known = {
            key: math.log((ours[key] + 0.5) / (others[key] + 0.5)) for key in {_key(each) for each in outputs}
        }
        return np.array([known[_key(output)] for output in outputs])

    return score


def _bits(outputs: Sequence[Any]) -> NDArray[np.float64] | None:
    """Return outputs as rows of bits, shape (n, bits); None where they are no rows of one length."""
    if isinstance(outputs[0], bytes | bytearray):
        if len({len(output) for output in outputs}) > 1:
            return None
        packed = np.frombuffer(b"".join(outputs), dtype=np.uint8).reshape(len(outputs), -1)
        return np.unpackbits(packed, axis=1).astype(np.float64)
    try:
        rows = np.asarray(outputs, dtype=np.float64)
    except ValueError:
        return None
    return rows if rows.ndim == 2 and np.isin(rows, (0.0, 1.0)).all() else None


def _bit_score(first: NDArray[np.float64], second: NDArray[np.float64] | None) -> Score:
    if second is None or second.shape[1] != first.shape[1]:
        return lambda outputs: np.zeros(len(outputs))
    n = len(first)
    ours, others = ((rows.sum(axis=0) + 0.5) / (n + 1.0) for rows in (first, second))
    slope = np.log(ours / others) - np.log((1.0 - ours) / (1.0 - others))
    # Mere noise is left out: over many bits it would drown what tells the inputs apart.
    spread = np.sqrt((ours * (1.0 - ours) + others * (1.0 - others)) / n)
    slope[np.abs(ours - others) < 4.0 * spread] = 0.0

    def score(outputs: Sequence[Any]) -> NDArray[np.float64]:
        rows = _bits(outputs)
        return np.zeros(len(outputs)) if rows is None else np.round(rows @ slope, 9)

    return score
