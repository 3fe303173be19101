"""The exact law of orbits' sets, which an implementation may draw by steps of its own."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

import msgpack
import numpy as np
from case_changes import Case
from conformance_pack import single
from random_channels import Chance
from scipy.stats import chi2

from hubbub import Survey
from hubbub.errors import HubbubError

DRAWS = 800


def told(canonical: bytes) -> str:
    """The kind of channel in canonical bytes; nothing where a rule is broken or epsilon is small."""
    try:
        channel = Survey.from_canonical(canonical).channel
    except HubbubError:
        return ""
    return channel.kind if channel.epsilon > 0.9 else ""


def candidates(width: int) -> Iterable[bytes]:
    """All strings of bytes that could be symbols: a byte for small sets, or orbit, category and set."""
    return map(bytes, itertools.product(*([range(64)] if width == 1 else [range(4), range(6), range(64)])))


def chance_of(seen: np.ndarray, law: np.ndarray) -> float:
    """The chance of counts at least so far from a law; sets expected less than five times count as one."""
    assert abs(law.sum() - 1.0) < 1e-9
    expected = law * seen.sum()
    rare = expected < 5.0
    pairs = [*zip(seen[~rare], expected[~rare], strict=True), (seen[rare].sum(), expected[rare].sum())]
    statistic = sum((n - mean) ** 2 / mean for n, mean in pairs if mean > 0.0)
    return float(chi2.sf(statistic, len(pairs) - 1))


def law_holds(kind: str, results: Callable[[Sequence[str]], list[str]]) -> None:
    """800 sets of one input: chi-square by set over the exact law, at a false-alarm probability of 1e-7.

    The bytes follow from a text, and the law of the farthest other input must fail.
    """
    chance = Chance(f"the law of {kind}")
    drawn = (single(chance, "orbits", 6) for _ in range(600))
    survey = next(Survey.from_canonical(each) for each in drawn if told(each) == kind)
    channel, value = survey.channel, msgpack.unpackb(survey.canonical)[5][3][0]
    parts = (survey.canonical, msgpack.packb([value]), bytes(16), b"\0")
    lines = [Case("answer", (*parts, chance.token_bytes(160))).line for _ in range(DRAWS)]
    found = Counter(words.split()[2] for words in results(lines))
    symbols = [each for each in candidates(channel.width) if channel.admits(each)]
    assert set(found) <= {each.hex() for each in symbols}
    seen = np.array([found[each.hex()] for each in symbols])
    laws = np.exp([channel.log_likelihood(each) for each in symbols]).T
    own = survey.input_of(value)
    assert chance_of(seen, laws[own]) > 1e-7
    assert min(chance_of(seen, law) for x, law in enumerate(laws) if x != own) < 1e-7
