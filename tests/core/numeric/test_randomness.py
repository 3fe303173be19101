"""Uniform integers: exact by rejection, the same one or many at a time, and never the same word twice."""

import copy
import io
import itertools
import os
import pickle
import struct
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import chi2

from hubbub.errors import ParameterError
from hubbub.numeric import randomness
from hubbub.numeric.randomness import SYSTEM, UniformInteger, below, below_many, bernoulli
from hubbub.testing import RecordedSource, seeded

TOTALS = [1, 2, 3, 91, 2**16, 2**31 + 1, 2**32 - 1, 2**32, 2**32 + 1, 10**12, 2**62, 2**62 + 1, 2**63 - 1]


def words(*values, width=4):
    return RecordedSource(b"".join(value.to_bytes(width, "little") for value in values))


@pytest.mark.parametrize("total", TOTALS)
def test_kept_words_are_a_whole_multiple_of_the_total(total):
    law = UniformInteger(total)
    span = 2 ** (8 * law.word_bytes)
    assert law.limit % total == 0
    assert span - total < law.limit <= span


@pytest.mark.parametrize("total", TOTALS)
def test_words_at_the_limit_are_dropped_and_the_one_before_is_kept(total):
    law = UniformInteger(total)
    width = law.word_bytes
    top = 2 ** (8 * width) - 1
    dropped = [law.limit, top] if law.limit <= top else []
    assert law.one(words(*dropped, law.limit - 1, width=width)) == total - 1
    drawn = law.many(2, words(*dropped, law.limit - 1, 0, 5, 6, 7, width=width))
    assert drawn.tolist() == [total - 1, 0]


@pytest.mark.parametrize("total", [total for total in TOTALS if UniformInteger(total).limit % 2**32])
def test_the_system_s_words_are_dropped_from_the_limit_on_and_joined_low_half_first(total, monkeypatch):
    """The law of `one` for real reports: the system gives the limit, which is dropped, then two others."""
    law = UniformInteger(total)
    kept = [law.limit - 1, (law.limit - 1) // 3]
    given = b"".join(word.to_bytes(law.word_bytes, "little") for word in (law.limit, *kept))
    system = io.BytesIO(given)
    monkeypatch.setattr(randomness.os, "urandom", system.read)
    assert [law.one(), law.one()] == [word % total for word in kept]
    assert system.read() == b""


def test_word_below_the_limit_is_reduced():
    assert below(91, words(91 * 1000 + 17)) == 17
    assert below_many(91, 2, words(91 * 1000 + 17, 4)).tolist() == [17, 4]


@pytest.mark.parametrize("total", TOTALS)
def test_many_draws_are_what_single_draws_give_from_the_same_bytes(total):
    one, many = seeded(3), seeded(3)
    singles = [below(total, one) for _ in range(1000)]
    assert below_many(total, 1000, many).tolist() == singles
    assert max(singles) < total


def test_many_draws_patch_the_rejected_and_keep_the_rest():
    total = 2**31 + 1  # nearly half of all words are dropped
    source = seeded(9)
    drawn = below_many(total, 5000, source)
    assert drawn.size == 5000
    assert drawn.max() < total


@pytest.mark.statistical
@pytest.mark.parametrize("total", [91, 3 * 2**30, 5 * 2**60])
def test_draws_are_uniform_over_cells(total):
    """n = 500,000 draws in 60 equal cells, seed 1: Pearson's chi-square, 59 degrees of freedom.

    Rejected beyond the 1 - 1e-7 quantile, three totals: false alarm 3e-7. For total 91 the cells are the
    symbols, 90 degrees. Control: words reduced without rejection, which favour the lower residues of
    3 * 2^30 by two to one, must be rejected.
    """

    def rejects(draws):
        cells = 91 if total == 91 else 60
        counts = np.bincount((draws.astype(object) * cells // total).astype(int), minlength=cells)
        expected = len(draws) / cells
        return ((counts - expected) ** 2 / expected).sum() > chi2.isf(1e-7, cells - 1)

    assert not rejects(below_many(total, 500_000, seeded(1)))
    if total == 3 * 2**30:
        raw = np.frombuffer(seeded(1).token_bytes(4 * 500_000), dtype="<u4")
        assert rejects(raw % np.uint32(total))


@pytest.mark.parametrize("total", [0, -1, 2**63, 2**64])
def test_total_out_of_range_is_refused(total):
    with pytest.raises(ParameterError, match="total"):
        below(total)
    with pytest.raises(ParameterError, match="total"):
        below_many(total, 3)


def test_negative_number_of_draws_is_refused():
    with pytest.raises(ParameterError, match="draws"):
        below_many(3, -1)


def test_no_draws_are_an_empty_row():
    assert below_many(3, 0).shape == (0,)


@pytest.mark.parametrize(("numerator", "denominator"), [(1, 3), (2, 7), (0, 5), (5, 5), (63, 91)])
def test_bernoulli_is_true_for_exactly_its_share_of_draws(numerator, denominator):
    outcomes = [bernoulli(numerator, denominator, words(word)) for word in range(denominator)]
    assert Fraction(sum(outcomes), denominator) == Fraction(numerator, denominator)


def test_bernoulli_of_a_huge_denominator_reads_as_many_bytes_and_drops_what_is_beyond():
    denominator = 2**70 + 1  # 71 bits: nine bytes, the lowest of 72 bits unused
    numerator = 2**69
    below_it, at_it, beyond = (
        (value << 1).to_bytes(9, "little") for value in (numerator - 1, numerator, denominator)
    )
    assert bernoulli(numerator, denominator, RecordedSource(below_it))
    assert not bernoulli(numerator, denominator, RecordedSource(at_it))
    assert bernoulli(numerator, denominator, RecordedSource(beyond + below_it))


@pytest.mark.parametrize(("numerator", "denominator"), [(-1, 3), (4, 3), (0, 0), (1, -3), (123456789, 2)])
def test_bernoulli_refuses_what_is_no_probability_without_repeating_it(numerator, denominator):
    with pytest.raises(ParameterError) as refusal:
        bernoulli(numerator, denominator)
    assert "123456789" not in str(refusal.value)


def test_a_single_draw_takes_the_bytes_that_it_needs_and_keeps_none(monkeypatch):
    asked = []

    def counted(n):
        asked.append(n)
        return bytes(n)

    monkeypatch.setattr(randomness.os, "urandom", counted)
    below(91), below(2**40), bernoulli(1, 3), SYSTEM.token_bytes(5)
    assert asked == [4, 8, 4, 5]
    assert not hasattr(SYSTEM, "__dict__") or not vars(SYSTEM)


def test_a_law_can_be_copied_and_sent_to_another_process():
    law = UniformInteger(2**40)
    for other in (copy.deepcopy(law), pickle.loads(pickle.dumps(law))):  # noqa: S301 - our own bytes
        assert other.one(words(5, width=8)) == 5


@pytest.mark.parametrize("total", [91, 2**40])
def test_a_system_that_gives_too_few_bytes_draws_nothing(total, monkeypatch):
    monkeypatch.setattr(randomness.os, "urandom", lambda n: bytes(n - 1))
    with pytest.raises(struct.error):
        below(total)


FORKED_BY_C = """
import ctypes, os
from hubbub.numeric.randomness import below
below(2**62)
reader, writer = os.pipe()
child = ctypes.PyDLL(None).fork()
drawn = b"".join(below(2**62).to_bytes(8, "little") for _ in range(100))
if child == 0:
    os.write(writer, drawn)
    os._exit(0)
os.waitpid(child, 0)
own, other = ({drawn[i:i + 8] for i in range(0, 800, 8)} for drawn in (drawn, os.read(reader, 800)))
print(len(own), len(other), len(own & other))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_fork_that_python_does_not_hear_of_draws_nothing_that_its_parent_will():
    """Draws of 62 bits, 100 on each side: two agree by chance with probability below 3e-15."""
    done = subprocess.run([sys.executable, "-c", FORKED_BY_C], capture_output=True, text=True, check=True)
    assert done.stdout == "100 100 0\n"


def test_threads_never_share_a_word():
    """80,000 words of 62 bits: two independent ones agree with probability below n^2/2^63 = 7e-10."""
    with ThreadPoolExecutor(4) as pool:
        rows = list(pool.map(lambda _: [below(2**62) for _ in range(20_000)], range(4)))
    assert len(set(itertools.chain(*rows))) == 80_000


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_forked_child_draws_nothing_that_its_parent_will():
    """Up to 256 words of 62 bits on each side agree by chance with probability below 2e-14.

    Control: a list of words that is not dropped at the fork is drawn again by the child.
    """
    below(2**62)
    kept = [int.from_bytes(os.urandom(8), "little") for _ in range(50)]
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writer, pickle.dumps(([below(2**62) for _ in range(200)], [kept.pop() for _ in range(50)])))
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        drawn, repeated = pickle.load(pipe)  # noqa: S301 - written by this very test
    os.waitpid(child, 0)
    assert not set(drawn) & {below(2**62) for _ in range(200)}
    assert repeated == [kept.pop() for _ in range(50)]


def test_seeded_source_repeats_and_other_seeds_differ():
    assert seeded(7).token_bytes(1000) == seeded(7).token_bytes(1000)
    assert seeded(7).token_bytes(1000) != seeded(8).token_bytes(1000)


def test_seeded_stream_does_not_depend_on_the_sizes_it_is_read_in():
    source = seeded(5)
    pieces = b"".join(source.token_bytes(n) for n in [1, 4, 0, 300, 7, 4096, 3])
    assert pieces == seeded(5).token_bytes(len(pieces))


@pytest.mark.parametrize("seed", [-1, 1.5, "7", None, True])
def test_seed_that_is_no_natural_number_is_refused(seed):
    with pytest.raises(ParameterError, match="seed"):
        seeded(seed)


def test_recorded_source_never_gives_more_than_it_holds():
    with pytest.raises(ParameterError, match="recorded"):
        below(91, RecordedSource(b"abc"))
