"""The populations that every library is asked about: ages, two of Zipf's, a spike and a junta.

Ages are the column `age` of a file of UCI Adult where one is given or lies in ../shared/data, made ones
otherwise (two bumps, nobody below 17). A spike has everybody at one value, a junta spreads them evenly over
sixteen; both are the inputs of Feldman, Nelson, Nguyen and Talwar (ICML 2022). Kosarak's clicks are known for
41,270 pages with a long tail: Zipf's law of exponent 1.2 stands for them.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

ADULT = Path(__file__).parents[3] / "shared" / "data" / "adult.csv"
DEVICES = 45_222


@dataclass(frozen=True)
class Population:
    """A population of devices with a value each.

    Attributes:
        name: For the heading of a table.
        values: The value of every device, shape (n,), from 0.
        sizes: Values per category, in order.
    """

    name: str
    values: NDArray[np.int64]
    sizes: tuple[int, ...]

    @property
    def k(self) -> int:
        """The number of values."""
        return sum(self.sizes)

    @property
    def category_of(self) -> NDArray[np.intp]:
        """The category of every value, shape (k,)."""
        return np.repeat(np.arange(len(self.sizes)), self.sizes)

    def some(self, n: int, generator: np.random.Generator) -> NDArray[np.int64]:
        """Return the values of n devices, drawn without replacement."""
        return generator.permutation(self.values)[:n]


def populations(adult: Path | None = None) -> list[Population]:
    """Return all of them; `adult` is a file with a column `age`."""
    file = adult or (ADULT if ADULT.exists() else None)
    tens = (10,) * 9 + (1,)
    return [
        Population("ages of UCI Adult" if file else "made ages", _ages(file), tens),
        Population("Zipf, K = 1,000", _drawn(_zipf(1_000)), (100,) * 10),
        Population("spike, K = 1,000", np.zeros(DEVICES, dtype=np.int64), (100,) * 10),
        Population("junta of 16, K = 1,000", np.arange(DEVICES) % 16 * 61, (100,) * 10),
        Population("Zipf, K = 41,270, as Kosarak", _drawn(_zipf(41_270)), (4_127,) * 10),
    ]


def has_ages(file: Path) -> bool:
    """Return whether a file can be read as a CSV with a column `age`."""
    try:
        with file.open(newline="", encoding="utf-8") as lines:
            return "age" in next(csv.reader(lines, skipinitialspace=True), [])
    except (OSError, UnicodeDecodeError):
        return False


def _ages(file: Path | None) -> NDArray[np.int64]:
    """Return ages less 10, 91 of them from 10 to 100."""
    if file is not None:
        with file.open(newline="", encoding="utf-8") as lines:
            ages = [int(row["age"]) for row in csv.DictReader(lines, skipinitialspace=True)]
        return np.clip(np.array(ages), 10, 100) - 10
    age = np.arange(91.0)
    shares = np.exp(-0.5 * ((age - 24) / 11) ** 2) + 0.35 * np.exp(-0.5 * ((age - 45) / 12) ** 2)
    shares[:7] = 0.0
    return _drawn(shares / shares.sum())


def _zipf(k: int) -> NDArray[np.float64]:
    shares = np.arange(1.0, k + 1) ** -1.2
    return np.asarray(shares / shares.sum())


def _drawn(shares: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return whole devices of these shares: the same ones in every run."""
    return np.random.default_rng(15).choice(len(shares), size=DEVICES, p=shares)
