"""One function per library and mechanism: from K and epsilon to a client and an estimator of its reports.

Each is what somebody would write who uses that library for K values: `lines` counts it. It runs in the
virtual environment of `make peers` only.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import opendp.prelude as dp
from diffprivlib.mechanisms import Binary, Exponential
from multi_freq_ldpy.pure_frequency_oracles.GRR import GRR_Aggregator_MI, GRR_Client
from multi_freq_ldpy.pure_frequency_oracles.LH import LH_Aggregator_MI, LH_Client
from multi_freq_ldpy.pure_frequency_oracles.SS import SS_Aggregator_MI, SS_Client
from multi_freq_ldpy.pure_frequency_oracles.UE import UE_Aggregator_MI, UE_Client
from numpy.typing import NDArray
from pure_ldp.frequency_oracles.direct_encoding import DEClient, DEServer
from pure_ldp.frequency_oracles.hadamard_response import HadamardResponseClient, HadamardResponseServer
from pure_ldp.frequency_oracles.local_hashing import LHClient, LHServer
from pure_ldp.frequency_oracles.unary_encoding import UEClient, UEServer

from hubbub import mechanisms
from hubbub.estimation import estimator_for
from hubbub_authoring.mechanisms.orbits import orbits

dp.enable_features("contrib")

Client = Callable[[Any], Any]
"""From a value to a report; Hubbub's take arrays of values, too."""

Server = Callable[[Sequence[Any]], NDArray[np.float64]]
"""From reports to the shares of all values."""


@dataclass(frozen=True)
class Entry:
    """A mechanism of a library.

    Attributes:
        library: Its name.
        mechanism: The family: rows of one family are compared with each other.
        build: From K and epsilon to client and server.
        bits: From K and epsilon to the bits of a report, packed as tightly as can be.
        secure: Whether a client's randomness is the operating system's.
        most: The largest K that is tried.
        biased: Whether estimates are cut at 0 and scaled, with no way to have them otherwise.
        serves: Whether the library estimates; else lines of NumPy here do.
    """

    library: str
    mechanism: str
    build: Callable[[int, float], tuple[Client, Server]]
    bits: Callable[[int, float], float]
    secure: bool = False
    most: int = 41_270
    biased: bool = False
    serves: bool = True

    @property
    def lines(self) -> int:
        """Lines of `build` without its head."""
        return len(inspect.getsource(self.build).strip().splitlines()) - 1


def pure_grr(k: int, epsilon: float) -> tuple[Client, Server]:
    def estimate(reports: Sequence[Any]) -> NDArray[np.float64]:
        server = DEServer(epsilon, k, index_mapper=int)
        server.aggregate_all(reports)
        return server.estimate_all(range(k), suppress_warnings=True) / len(reports)

    return DEClient(epsilon, k, index_mapper=int).privatise, estimate


def pure_unary(k: int, epsilon: float) -> tuple[Client, Server]:
    def estimate(reports: Sequence[Any]) -> NDArray[np.float64]:
        server = UEServer(epsilon, k, use_oue=True, index_mapper=int)
        server.aggregate_all(reports)
        return server.estimate_all(range(k), suppress_warnings=True) / len(reports)

    return UEClient(epsilon, k, use_oue=True, index_mapper=int).privatise, estimate


def pure_hash(k: int, epsilon: float) -> tuple[Client, Server]:
    def estimate(reports: Sequence[Any]) -> NDArray[np.float64]:
        server = LHServer(epsilon, k, use_olh=True, index_mapper=int)
        server.aggregate_all(reports)
        return server.estimate_all(range(k), suppress_warnings=True) / len(reports)

    return LHClient(epsilon, k, use_olh=True, index_mapper=int).privatise, estimate


def pure_hadamard(k: int, epsilon: float) -> tuple[Client, Server]:
    server = HadamardResponseServer(epsilon, k, index_mapper=int)

    def estimate(reports: Sequence[Any]) -> NDArray[np.float64]:
        server.reset()
        server.aggregate_all(reports)
        return server.estimate_all(range(k), suppress_warnings=True) / len(reports)

    return HadamardResponseClient(epsilon, k, server.get_hash_funcs(), index_mapper=int).privatise, estimate


def multi_grr(k: int, epsilon: float) -> tuple[Client, Server]:
    return lambda value: GRR_Client(value, k, epsilon), lambda all_: GRR_Aggregator_MI(all_, k, epsilon)


def multi_unary(k: int, epsilon: float) -> tuple[Client, Server]:
    return lambda value: UE_Client(value, k, epsilon), lambda reports: UE_Aggregator_MI(reports, epsilon)


def multi_hash(k: int, epsilon: float) -> tuple[Client, Server]:
    return lambda value: LH_Client(value, k, epsilon), lambda all_: LH_Aggregator_MI(all_, k, epsilon)


def multi_subset(k: int, epsilon: float) -> tuple[Client, Server]:
    return lambda value: SS_Client(value, k, epsilon), lambda all_: SS_Aggregator_MI(all_, k, epsilon)


def opendp_grr(k: int, epsilon: float) -> tuple[Client, Server]:
    truth = math.exp(epsilon) / (math.exp(epsilon) + k - 1)
    other = (1 - truth) / (k - 1)

    def estimate(reports: Sequence[Any]) -> NDArray[np.float64]:
        return np.asarray((np.bincount(reports, minlength=k) / len(reports) - other) / (truth - other))

    return dp.m.make_randomized_response(list(range(k)), truth), estimate


def opendp_bits(k: int, epsilon: float) -> tuple[Client, Server]:
    flip = 2 / (math.exp(epsilon / 2) + 1)
    domain = dp.bitvector_domain(max_weight=1)
    randomise = dp.m.make_randomized_response_bitvec(domain, dp.discrete_distance(), flip)
    one_hot = [np.packbits(row, bitorder="little").tobytes() for row in np.eye(k, dtype=np.uint8)]

    def estimate(reports: Sequence[Any]) -> NDArray[np.float64]:
        return np.array(dp.m.debias_randomized_response_bitvec(reports, flip))[:k] / len(reports)

    return lambda value: randomise(one_hot[value]), estimate


def diffprivlib_grr(k: int, epsilon: float) -> tuple[Client, Server]:
    truth = math.exp(epsilon) / (math.exp(epsilon) + k - 1)
    other = (1 - truth) / (k - 1)

    def client(value: int) -> int:
        if value not in drawn:
            utility = [float(each == value) for each in range(k)]
            drawn[value] = Exponential(epsilon=epsilon, sensitivity=1, utility=utility, monotonic=True)
        return int(drawn[value].randomise())

    def estimate(reports: Sequence[Any]) -> NDArray[np.float64]:
        return np.asarray((np.bincount(reports, minlength=k) / len(reports) - other) / (truth - other))

    drawn: dict[int, Exponential] = {}
    return client, estimate


def diffprivlib_binary(k: int, epsilon: float) -> tuple[Client, Server]:
    assert k == 2
    mechanism = Binary(epsilon=epsilon, value0="0", value1="1")
    truth = math.exp(epsilon) / (math.exp(epsilon) + 1)

    def estimate(reports: Sequence[Any]) -> NDArray[np.float64]:
        one = (np.mean([report == "1" for report in reports]) - (1 - truth)) / (2 * truth - 1)
        return np.array([1 - one, one])

    return lambda value: mechanism.randomise("01"[value]), estimate


def hubbub_grr(k: int, epsilon: float) -> tuple[Client, Server]:
    channel = mechanisms.grr(k, epsilon=epsilon)
    estimator = estimator_for(channel)
    return channel.perturb, lambda reports: estimator(channel.tally(reports), len(reports)).values


def hubbub_subset(k: int, epsilon: float) -> tuple[Client, Server]:
    channel = mechanisms.subset_selection(k, epsilon=epsilon)
    estimator = estimator_for(channel)
    return channel.perturb, lambda reports: estimator(channel.tally(reports), len(reports)).values


def hubbub_unary(k: int, epsilon: float) -> tuple[Client, Server]:
    channel = mechanisms.unary(k, epsilon=epsilon)
    estimator = estimator_for(channel)
    return channel.perturb, lambda reports: estimator(channel.tally(reports), len(reports)).values


def hubbub_hash(k: int, epsilon: float) -> tuple[Client, Server]:
    channel = mechanisms.local_hashing(k, epsilon=epsilon)
    estimator = estimator_for(channel)
    return channel.perturb, lambda reports: estimator(channel.tally(reports), len(reports)).values


def hubbub_orbits(k: int, epsilon: float) -> tuple[Client, Server]:
    sizes = [10] * 9 + [1] if k == 91 else [k // 10] * 10
    channel = orbits(sizes, epsilon=epsilon)
    estimator = estimator_for(channel)
    return channel.perturb, lambda reports: estimator(channel.tally(reports), len(reports)).values


def of_value(k: int, epsilon: float) -> float:
    return math.ceil(math.log2(k))


def of_bits(k: int, epsilon: float) -> float:
    return k


def of_seed(k: int, epsilon: float) -> float:
    return 63 + math.log2(round(math.exp(epsilon)) + 1)


def of_hadamard(k: int, epsilon: float) -> float:
    return math.ceil(math.log2(k + 1))


def of_pool(k: int, epsilon: float) -> float:
    return math.log2(mechanisms.local_hashing(k, epsilon=epsilon).outputs)


GRR, UNARY, HASH, SUBSET = "randomised response", "unary encoding", "local hashing", "subset selection"
OURS = (
    Entry("Hubbub", GRR, hubbub_grr, of_value, True),
    Entry("Hubbub", UNARY, hubbub_unary, of_bits, True, 1_000),
    Entry("Hubbub", HASH, hubbub_hash, of_pool, True),
    Entry("Hubbub", SUBSET, hubbub_subset, of_bits, True, 1_000),
    Entry("Hubbub", "orbits", hubbub_orbits, of_bits, True, 1_000),
)
PEERS = (
    Entry("pure-ldp", GRR, pure_grr, of_value),
    Entry("multi-freq-ldpy", GRR, multi_grr, of_value, biased=True),
    Entry("OpenDP", GRR, opendp_grr, of_value, True, 1_000, serves=False),
    Entry("diffprivlib", GRR, diffprivlib_grr, of_value, True, 1_000, serves=False),
    Entry("pure-ldp", UNARY, pure_unary, of_bits, False, 1_000),
    Entry("multi-freq-ldpy", UNARY, multi_unary, of_bits, False, 1_000, True),
    Entry("OpenDP", UNARY, opendp_bits, of_bits, True, 1_000),
    Entry("pure-ldp", HASH, pure_hash, of_seed, False, 1_000),
    Entry("multi-freq-ldpy", HASH, multi_hash, of_seed, False, 1_000, True),
    Entry("multi-freq-ldpy", SUBSET, multi_subset, of_bits, False, 1_000, True),
    Entry("pure-ldp", "Hadamard response", pure_hadamard, of_hadamard),
)
BINARY = (
    Entry("Hubbub", "binary", hubbub_grr, of_value, True),
    Entry("pure-ldp", "binary", pure_grr, of_value),
    Entry("multi-freq-ldpy", "binary", multi_grr, of_value, biased=True),
    Entry("OpenDP", "binary", opendp_grr, of_value, True, serves=False),
    Entry("diffprivlib", "binary", diffprivlib_binary, of_value, True, serves=False),
)
