"""The cases of an evaluation, one after another: every combination of what the command line lists."""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from hubbub import Survey
from hubbub.numeric import SYSTEM, Source
from hubbub.survey import AnyEstimator
from hubbub.testing import seeded
from hubbub_authoring.design import report_bytes
from hubbub_lab.errors import LabError
from hubbub_lab.evaluate.count import LedgerSpending, SampledPopulation, count_round, spending
from hubbub_lab.evaluate.data import DataSet
from hubbub_lab.evaluate.faults import FaultMix
from hubbub_lab.evaluate.figures import Quantity, QuantityFigures, RepeatedErrors
from hubbub_lab.evaluate.surveys import SurveyMaker

REPORTS: Final = 200_000
"""Reports of a case where no number of repeats is given: as many repeats as make them, up to MOST_REPEATS."""

MOST_REPEATS: Final = 20


@dataclass(frozen=True, slots=True)
class CaseKey:
    """One combination of what is evaluated.

    Attributes:
        data: Name of the data set.
        devices: How many answer.
        mechanism: As asked for: "auto" and "own" are not resolved.
        epsilon: Declared.
        faults: What goes wrong.
    """

    data: str
    devices: int
    mechanism: str
    epsilon: float
    faults: FaultMix


@dataclass(frozen=True, slots=True, eq=False)
class MeasuredCase:
    """One case with its figures.

    Attributes:
        key: Which one.
        label: The mechanism with its keys, as people read them.
        inputs: K, missing included.
        repeats: Rounds that were simulated.
        figures: By quantity; those that the survey makes known.
        verdicts: What became of the reports, all repeats together.
        report_bytes: Bytes of one report on the wire, at most.
        log_bytes: Bytes in the log per report that arrived.
        certified: Epsilon of the channel's integers.
        spent: What ledgers lost for one answer; None where a device would refuse the survey.
        cohort: Reports below which a server releases nothing.
        seconds: Wall-clock time of the rounds, from values to estimates.
        processor_seconds: The processor's.
    """

    key: CaseKey
    label: str
    inputs: int
    repeats: int
    figures: dict[Quantity, QuantityFigures]
    verdicts: dict[str, int]
    report_bytes: int
    log_bytes: float
    certified: float
    spent: LedgerSpending | None
    cohort: int
    seconds: float
    processor_seconds: float

    @property
    def short(self) -> str:
        """The mechanism without its keys."""
        return self.label.partition(" (")[0]

    def as_json(self) -> dict[str, Any]:
        """Return the case as JSON types."""
        spent = self.spent
        return {
            "data": self.key.data,
            "devices": self.key.devices,
            "mechanism": self.key.mechanism,
            "compiled": self.label,
            "inputs": self.inputs,
            "epsilon": self.key.epsilon,
            "certified_epsilon": self.certified,
            "faults": self.key.faults.label,
            "repeats": self.repeats,
            "figures": {quantity: found.as_json() for quantity, found in self.figures.items()},
            "verdicts": self.verdicts,
            "report_bytes": self.report_bytes,
            "log_bytes_per_report": self.log_bytes,
            "spent": None
            if spent is None
            else {"ledgers": spent.devices, "mean": spent.mean, "most": spent.most},
            "minimum_cohort": self.cohort,
            "seconds": self.seconds,
            "processor_seconds": self.processor_seconds,
        }


@dataclass(frozen=True, slots=True, eq=False)
class EvaluationPlan:
    """The whole of what is evaluated: every combination of these.

    Attributes:
        questions: A data set and the question that it is asked, with the numbers of devices.
        mechanisms: Names.
        epsilons: Declared.
        faults: Mixes of them; the first is none.
        repeats: Rounds of every case; None for as many as make REPORTS reports.
        seed: Makes it repeatable; None draws from the operating system.
    """

    questions: tuple[tuple[DataSet, SurveyMaker, tuple[int, ...]], ...]
    mechanisms: tuple[str, ...]
    epsilons: tuple[float, ...]
    faults: tuple[FaultMix, ...]
    repeats: int | None = None
    seed: int | None = None

    def repeats_of(self, devices: int) -> int:
        """Return how many rounds a case has."""
        return self.repeats or max(1, min(MOST_REPEATS, REPORTS // devices))

    @property
    def reports(self) -> int:
        """Reports of all cases together, without faults."""
        cases = len(self.mechanisms) * len(self.epsilons) * len(self.faults)
        sizes = [size for *_, devices in self.questions for size in devices]
        return sum(cases * size * self.repeats_of(size) for size in sizes)

    def cases(self) -> int:
        """Return how many cases there are."""
        sizes = sum(len(devices) for *_, devices in self.questions)
        return sizes * len(self.mechanisms) * len(self.epsilons) * len(self.faults)

    def surveys(self) -> list[tuple[SurveyMaker, str, float, Survey]]:
        """Return every survey, compiled, so that one that does not fit is told before anything runs."""
        return [
            (maker, mechanism, epsilon, maker.survey(mechanism, epsilon))
            for _, maker, _ in self.questions
            for mechanism in self.mechanisms
            for epsilon in self.epsilons
        ]


def evaluate(
    plan: EvaluationPlan, *, tell: Callable[[int, int, CaseKey], None] = lambda done, cases, key: None
) -> Iterator[MeasuredCase]:
    """Yield the cases of a plan, measured.

    Args:
        plan: What to evaluate.
        tell: Is told how many cases of how many are done, and which comes next.
    """
    plan.surveys()
    source = SYSTEM if plan.seed is None else seeded(plan.seed)
    chance = np.random.default_rng(plan.seed)
    done = 0
    for data, maker, sizes in plan.questions:
        for devices in sizes:
            population = SampledPopulation.of(data, devices, chance)
            for mechanism in plan.mechanisms:
                for epsilon in plan.epsilons:
                    survey = maker.survey(mechanism, epsilon)
                    lab = _Lab(survey, maker.label(mechanism, epsilon), population, source, chance)
                    for faults in plan.faults:
                        key = CaseKey(data.name, devices, mechanism, epsilon, faults)
                        tell(done, plan.cases(), key)
                        yield lab.measure(key, repeats=plan.repeats_of(devices))
                        done += 1


@dataclass(slots=True, eq=False)
class _Lab:
    """One survey and who answers it; its estimator and ledgers serve all faults."""

    survey: Survey
    label: str
    population: SampledPopulation
    source: Source
    chance: np.random.Generator
    estimator: AnyEstimator = field(init=False)
    spent: LedgerSpending | None = field(init=False)

    def __post_init__(self) -> None:
        self.estimator = self.survey.estimator()
        self.spent = spending(self.survey, self.population, source=self.source)

    def measure(self, key: CaseKey, *, repeats: int) -> MeasuredCase:
        survey, after = self.survey, self.population
        if key.faults.drift:
            after = after.drifted(key.faults.drift, self.chance)
        errors = RepeatedErrors(survey, self.population.truth(survey), after.truth(survey))
        verdicts: dict[str, int] = {}
        log_bytes, began, used = 0, time.perf_counter(), time.process_time()
        for _ in range(repeats):
            counted = count_round(survey, self.population, key.faults, source=self.source, chance=self.chance)
            if not counted.release.tally.n:
                raise LabError(f"faults {key.faults.label} must leave a report to count, got none")
            tally = counted.release.tally
            errors.add(self.estimator(tally.counts, tally.n))
            for name, count in counted.verdicts.items():
                verdicts[name] = verdicts.get(name, 0) + count
            log_bytes += counted.log_bytes
        seconds, processor_seconds = time.perf_counter() - began, time.process_time() - used
        return MeasuredCase(
            key,
            self.label,
            survey.channel.inputs,
            repeats,
            errors.figures(self.estimator),
            verdicts,
            report_bytes(survey.channel),
            log_bytes / verdicts["attempts"],
            survey.channel.epsilon,
            self.spent,
            survey.minimum_cohort,
            seconds,
            processor_seconds,
        )


def peak_memory() -> int:
    """Return the most bytes that this process ever held."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
