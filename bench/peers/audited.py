"""An audit of other libraries' mechanisms, of wrong ones and of Hubbub's; `peers.py --audit` starts it.

Two audits look at each. `hubbub audit` chooses the event that tells two inputs apart best on half of the
reports and counts it on the other half. The second is that of LDP-Auditor (Arcolezi and Gambs, Revealing the
True Cost of Local Privacy, PETS 2024): guess the input from a report, evenly among the likeliest, and compare
how often the guess is one input under it and under another. That tool is on no package registry and knows its
own protocols alone, so the few lines of its rule stand here, over any channel; `published_auditor.py` runs
the tool itself where somebody has it. Both bound frequencies by Clopper and Pearson; a bound is above the
truth with at most the probability said. Where the law of a mechanism is known to the last bit, its epsilon is
computed from that, too.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from multi_freq_ldpy.pure_frequency_oracles.SS import SS_Client
from scipy import stats

from hubbub.channels import Channel
from hubbub.mechanisms.tree import tree
from hubbub_authoring import mechanisms
from hubbub_authoring.mechanisms.optimal import optimal_mean
from hubbub_authoring.mechanisms.orbits import orbits
from hubbub_lab.evaluation.audit import audit

OLD = Path(__file__).parents[2] / ".venv-peers" / "pure-ldp-1.1.2"
SAMPLES, FALSE_ALARM = 20_000, 1e-6
GENERATOR = np.random.default_rng(20261123)
Sampler = Callable[[int, int], Sequence[Any]]


@dataclass(frozen=True)
class Suspect:
    """A mechanism of somebody else, or a wrong one.

    Attributes:
        name: For the table.
        declared: The epsilon that it is said to have.
        sampler: From an input and a number to reports.
        inputs: How many inputs it has.
        truth: Its epsilon, where that is known.
        likelihood: As `hubbub audit` takes it.
        broken: Whether it gives away more than it declares, so that the audit must find it.
    """

    name: str
    declared: float
    sampler: Sampler
    inputs: int
    truth: str = ""
    likelihood: Callable[[Any, int], float] | None = None
    broken: bool = True


def one_by_one(client: Callable[[int], Any]) -> Sampler:
    return lambda x, n: [client(x) for _ in range(n)]


def unary_of(old: bool, use_oue: bool) -> Callable[[int], Any]:
    """Return pure-ldp's unary encoding, of the locked version or of 1.1.2."""
    gone = {name: sys.modules.pop(name) for name in list(sys.modules) if name.split(".")[0] == "pure_ldp"}
    if old:
        sys.path.insert(0, str(OLD))
    from pure_ldp.frequency_oracles.unary_encoding import UEClient  # noqa: PLC0415 - one of two versions

    if old:
        sys.path.remove(str(OLD))
        for name in [name for name in sys.modules if name.split(".")[0] == "pure_ldp"]:
            del sys.modules[name]
        sys.modules.update(gone)
    privatise = UEClient(0.5, 8, use_oue=use_oue, index_mapper=int).privatise
    return lambda value: tuple(privatise(value).tolist())


def unary_truth(p: float, q: float) -> float:
    """Return the epsilon of 1.1.2: the true bit is drawn as any other first, then set with p once more."""
    own = 1 - (1 - p) * (1 - q)
    return math.log(own * (1 - q) / (q * (1 - own)))


def subset_ratio(k: int, epsilon: float) -> float:
    """Return the epsilon of multi-freq-ldpy's subsets to the last bit; inf where some are never sent.

    It sends a set with the value if a number of 53 random bits is at most p in binary64. Sets with a value
    and without it are then as likely as others of their kind.
    """
    size = int(max(1, np.rint(k / (np.exp(epsilon) + 1))))
    p = float(size * np.exp(epsilon) / (size * np.exp(epsilon) + k - size))
    hits = min(math.floor(Fraction(p) * 2**53) + 1, 2**53)
    if hits == 2**53:
        return math.inf
    ratio = Fraction(hits, 2**53 - hits) * Fraction(k - size, size)
    return math.log(ratio.numerator) - math.log(ratio.denominator)


def seeded(x: int, n: int) -> list[tuple[int, int]]:
    """Return randomised response of five values that sends the seed of its noise along."""
    return [(seed, (x + seed % 5) % 5) for seed in GENERATOR.integers(0, 2**40, n).tolist()]


def of_seed(output: tuple[int, int], x: int) -> float:
    """Return what a reader of the seed knows."""
    return 0.0 if (output[1] - output[0]) % 5 == x else -9.0


def suspects() -> list[Suspect]:
    """Return all that is not Hubbub's."""
    root = math.exp(0.25) / (math.exp(0.25) + 1)
    size = round(91 / (math.e + 1))
    order = 1 + math.log(size * 90 / (91 - size))
    return [
        Suspect(
            "pure-ldp 1.1.2, unary encoding, symmetric",
            0.5,
            one_by_one(unary_of(True, False)),
            8,
            f"{unary_truth(root, 1 - root):.4f}",
        ),
        Suspect(
            "pure-ldp 1.1.2, unary encoding, optimised",
            0.5,
            one_by_one(unary_of(True, True)),
            8,
            f"{unary_truth(0.5, 1 / (math.exp(0.5) + 1)):.4f}",
        ),
        Suspect(
            "pure-ldp 1.2.0, the same, symmetric",
            0.5,
            one_by_one(unary_of(False, False)),
            8,
            "0.5",
            broken=False,
        ),
        Suspect(
            "multi-freq-ldpy, subset selection as its client returns it",
            1.0,
            one_by_one(lambda value: int(SS_Client(value, 91, 1.0)[0])),
            91,
            f"{order:.4f}: its value comes first",
        ),
        Suspect(
            "multi-freq-ldpy, subset selection, sorted",
            1.0,
            one_by_one(lambda value: tuple(sorted(SS_Client(value, 12, 1.0).tolist()))),
            12,
            f"{subset_ratio(12, 1.0):.15f}",
            broken=False,
        ),
        Suspect("Laplace noise, a scale wrong by two", 1.0, _laplace, 2, "2"),
        Suspect("randomised response with its seed", 1.0, seeded, 5, "none", of_seed),
    ]


def _laplace(x: int, n: int) -> list[float]:
    return (x + GENERATOR.laplace(0.0, 0.5, n)).tolist()


def channels() -> dict[str, Channel]:
    """Return every mechanism of Hubbub at epsilon 1, twelve values in three categories."""
    sizes, one = [4, 4, 4], {"epsilon": 1.0}
    return {
        "randomised response": mechanisms.grr(12, **one),
        "randomised response, epsilon 5": mechanisms.grr(12, epsilon=5.0),
        "PB-GRR": mechanisms.pbgrr(sizes, epsilon=1.0, boost_epsilon=0.5),
        "subset selection": mechanisms.subset_selection(12, **one),
        "unary encoding, optimised": mechanisms.unary(12, **one),
        "unary encoding, symmetric": mechanisms.unary(12, epsilon=1.0, variant="symmetric"),
        "local hashing": mechanisms.local_hashing(12, **one),
        "levels": mechanisms.levels(sizes, **one),
        "orbits": orbits(sizes, **one),
        "optimal": optimal_mean(11, **one),
        "tree": tree(12, **one),
        "neighbourhood": mechanisms.neighbourhood(12, epsilon=1.0, boost_epsilon=0.5, window=1),
        "randomised response, dummy reports of a tenth": mechanisms.with_dummy_reports(
            mechanisms.grr(12, **one), participation=Fraction(9, 10)
        ),
        "boosted": mechanisms.boosted(12, **one),
        "R2DP": mechanisms.r2dp(12, within=2.0, **one),
        "square wave": mechanisms.square_wave(12, **one),
        "piecewise": mechanisms.piecewise(12, **one),
        "hybrid": mechanisms.hybrid(12, **one),
        "Duchi": mechanisms.duchi(12, **one),
    }


def reports_of(channel: Channel) -> Sampler:
    """Return a sampler of hashable reports."""

    def sample(x: int, n: int) -> list[Any]:
        symbols = channel.perturb([x] * n)
        return [row.tobytes() for row in symbols] if symbols.ndim == 2 else symbols.tolist()

    return sample


def guessed(channel: Channel) -> Callable[[Any], int]:
    """Return the guess of LDP-Auditor: any of the likeliest inputs of a report, evenly."""
    known: dict[Any, Any] = {}

    def guess(report: Any) -> int:
        if report not in known:
            logs = channel.log_likelihood(report)
            known[report] = np.flatnonzero(logs >= logs.max() - 1e-9)
        return int(GENERATOR.choice(known[report]))

    return guess


def by_guessing(sampler: Sampler, guess: Callable[[Any], int], pair: tuple[int, int]) -> float:
    """Return the bound of LDP-Auditor: from the chances of a guess under its input and under another."""
    hits, alarms = (sum(guess(each) == pair[0] for each in sampler(x, SAMPLES)) for x in pair)
    low = float(stats.beta.ppf(FALSE_ALARM / 2, hits, SAMPLES - hits + 1)) if hits else 0.0
    high = float(stats.beta.ppf(1 - FALSE_ALARM / 2, alarms + 1, SAMPLES - alarms))
    return max(math.log(low / high), 0.0) if low > 0.0 else 0.0


def main() -> int:
    """Print the tables; return 1 where a mechanism of Hubbub does not pass, or a defect is not found."""
    print(f"{SAMPLES:,} reports an input count, as many choose events; false alarms {FALSE_ALARM:g} each.\n")
    print("| not Hubbub's | declared | found, at least | its epsilon | verdict |\n|---|---|---|---|---|")
    status = 0
    for suspect in suspects():
        pairs = [(0, suspect.inputs - 1)]
        asked = {"samples": SAMPLES, "false_alarm": FALSE_ALARM, "likelihood": suspect.likelihood}
        found = audit(suspect.sampler, pairs, **asked).epsilon
        status |= (found > suspect.declared) != suspect.broken
        verdict = "gives away more" if found > suspect.declared else "nothing found"
        print(f"| {suspect.name} | {suspect.declared:g} | {found:.3f} | {suspect.truth} | {verdict} |")
    print("\nmulti-freq-ldpy's subsets, exactly, by the floats that it compares:\n")
    print("| K | declared | its epsilon | above by |\n|---|---|---|---|")
    for k, epsilon in (
        (12, 1.0),
        (91, 0.5),
        (91, 2.0),
        (91, 5.0),
        (2, 20.0),
        (2, 30.0),
        (2, 36.0),
        (2, 37.0),
    ):
        exact = subset_ratio(k, epsilon)
        print(f"| {k} | {epsilon:g} | {exact:.12g} | {exact - epsilon:.2g} |")
    print(
        "\n| Hubbub's | certified | found, at least | tightness | by guessing | tightness | s |\n"
        + "|---" * 7
        + "|"
    )
    for name, channel in channels().items():
        start, sampler, last = time.process_time(), reports_of(channel), channel.inputs - 1
        found = audit(
            sampler,
            [(0, last)],
            samples=SAMPLES,
            false_alarm=FALSE_ALARM,
            likelihood=lambda report, x, of=channel: float(of.log_likelihood(report)[x]),
        ).epsilon
        guess = by_guessing(sampler, guessed(channel), (0, last))
        spent = time.process_time() - start
        certified = channel.epsilon
        status |= max(found, guess) > certified
        print(
            f"| {name} | {certified:.6f} | {found:.3f} | {found / certified:.2f} | {guess:.3f} "
            f"| {guess / certified:.2f} | {spent:.1f} |",
            flush=True,
        )
    print("\nTightness: found over certified. One above 1, or a defect not found, ends this with status 1.")
    return status


if __name__ == "__main__":
    sys.exit(main())
