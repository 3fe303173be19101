"""The epsilon of a thousand releases composed, by Hubbub, dp-accounting and OpenDP, and the time it takes."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

import dp_accounting
import opendp.prelude as dp
from dp_accounting.pld import PLDAccountant

from hubbub_lab.continuous_noise.composition import Composition
from hubbub_lab.continuous_noise.profile import BoostedNoise, Gaussian, Laplace, Profile

dp.enable_features("contrib")
LAWS, DELTA = 1_000, 1e-6
SCALES = [20.0 + 30.0 * i / LAWS for i in range(LAWS)]
COMPOSED = "a sensitivity of 1, delta 10^-6"


def exact() -> float:
    """Return the epsilon of the Gaussians together: they are one Gaussian."""
    together = 1.0 / math.sqrt(sum(scale**-2 for scale in SCALES))
    return Profile(BoostedNoise(Gaussian(together)), 1.0).epsilon(DELTA)


def ours(kind: Callable[[float], Gaussian | Laplace]) -> float:
    return Composition([(Profile(BoostedNoise(kind(scale)), 1.0), 1) for scale in SCALES]).epsilon(DELTA)


def accountant(kind: str) -> float:
    # Of its relations the one whose values differ by the sensitivity, and not by twice as much.
    account = PLDAccountant(neighboring_relation=dp_accounting.NeighboringRelation.ADD_OR_REMOVE_ONE)
    of = dp_accounting.GaussianDpEvent if kind == "Gaussian" else dp_accounting.LaplaceDpEvent
    for scale in SCALES:
        account.compose(of(scale))
    return float(account.get_epsilon(DELTA))


def by_zcdp() -> float:
    """Return OpenDP's epsilon: zero-concentrated losses added, turned into (epsilon, delta) at the end."""
    domain, metric = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
    parts = [dp.m.make_gaussian(domain, metric, scale) for scale in SCALES]
    whole = dp.c.make_fix_delta(dp.c.make_zCDP_to_approxDP(dp.c.make_composition(parts)), DELTA)
    return float(whole.map(1.0)[0])


def section(table: Callable[[list[str], list[list[str]]], None], three: Callable[[float], str]) -> None:
    """Print a table of both kinds."""
    truth = exact()
    jobs: list[tuple[str, str, Callable[[], float]]] = [
        ("Gaussian", "Hubbub", lambda: ours(Gaussian)),
        ("Gaussian", "dp-accounting", lambda: accountant("Gaussian")),
        ("Gaussian", "OpenDP, by zCDP", by_zcdp),
        ("Laplace", "Hubbub", lambda: ours(Laplace)),
        ("Laplace", "dp-accounting", lambda: accountant("Laplace")),
    ]
    rows, spent = [], {}
    for kind, library, job in jobs:
        start = time.process_time()
        found = job()
        spent[kind, library] = seconds = time.process_time() - start
        rows.append(
            [
                kind,
                library,
                f"{found:.5f}",
                f"{100 * (found / truth - 1):+.3f} %" if kind == "Gaussian" else "",
                f"{seconds:.2f}",
                "" if library == "Hubbub" else three(seconds / spent[kind, "Hubbub"]),
            ]
        )
    table(["a thousand scales of", "library", "epsilon", "over the exact one", "s", "over ours"], rows)
    print(f"Scales from 20 to 50, {COMPOSED}.\n")
