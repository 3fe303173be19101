"""`hubbub audit`: a lower bound on epsilon from what a mechanism sends, ours or anybody's."""

from __future__ import annotations

import argparse
import importlib
import json
import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hubbub_deploy.commands.arguments import positive
from hubbub_deploy.errors import DeployError
from hubbub_deploy.files import load_survey

if TYPE_CHECKING:
    from hubbub_lab.evaluation import Sampler

_PAIRS = 6
"""Pairs of inputs that are told apart where none are given."""


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    audit = commands.add_parser("audit", help="bound the epsilon of a mechanism from below, by what it sends")
    subject = audit.add_mutually_exclusive_group(required=True)
    subject.add_argument("survey", nargs="?", type=Path, metavar="SURVEY", help="a survey file, - for stdin")
    subject.add_argument(
        "--callable",
        metavar="MODULE:FUNCTION",
        help="a function from an input to one output; modules of the working directory are found",
    )
    audit.add_argument("--inputs", type=positive, help="with --callable: its inputs are 0 to this, less one")
    audit.add_argument("--epsilon", type=float, help="with --callable: what it declares")
    audit.add_argument(
        "--samples", type=positive, default=100_000, help="outputs of each input (default: %(default)s)"
    )
    audit.add_argument(
        "--false-alarm",
        type=float,
        default=1e-6,
        help="probability with which the bound may be too high (default: %(default)g)",
    )
    audit.add_argument("--json", action="store_true", help="print the finding as JSON")
    audit.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Run it, and return its exit code: 1 if more is given away than was declared."""
    from hubbub_lab import evaluation  # noqa: PLC0415 - others need no scipy

    likelihood = None
    if options.survey is not None:
        for name, value in (("--inputs", options.inputs), ("--epsilon", options.epsilon)):
            if value is not None:
                raise DeployError(f"{name} must come with --callable, got {value:g} for a survey")
        survey = load_survey(options.survey)
        if survey.form.of_sets:
            raise DeployError(f"{options.survey} must ask for one value a device to be audited, got sets")
        channel, declared, inputs = survey.channel, survey.channel.epsilon, survey.channel.inputs
        sampler: Sampler = lambda x, n: _symbols(channel.perturb([x] * n))  # noqa: E731
        likelihood = lambda symbol, x: float(channel.log_likelihood(symbol)[x])  # noqa: E731
    else:
        if options.inputs is None or options.inputs < 2 or options.epsilon is None:
            raise DeployError("--callable must come with --inputs of at least 2 and --epsilon")
        if not 0.0 < options.epsilon < math.inf:
            raise DeployError(f"--epsilon must be above 0 and finite, got {options.epsilon:g}")
        function, declared, inputs = _function(options.callable), options.epsilon, options.inputs
        sampler = lambda x, n: [_called(function, x, options.callable) for _ in range(n)]  # noqa: E731
    found = evaluation.audit(
        sampler,
        pairs_of(inputs),
        samples=options.samples,
        false_alarm=options.false_alarm,
        likelihood=likelihood,
    )
    broken = found.epsilon > declared
    if options.json:
        facts = {
            "declared": declared,
            "epsilon_at_least": found.epsilon,
            "inputs": list(found.pair),
            "event": found.event,
            "probabilities": list(found.probabilities),
            "samples": found.samples,
            "false_alarm": found.false_alarm,
            "broken": broken,
        }
        print(json.dumps(facts))
    else:
        one, other = found.probabilities
        print(f"epsilon is at least {found.epsilon:.4f}, but for a probability of {found.false_alarm:g}")
        print(f"by inputs {found.pair[0]} and {found.pair[1]}: {found.event}")
        print(f"in {one:.4%} and {other:.4%} of {found.samples:,} reports")
        print(f"{declared:.6g} is stated: {'MORE IS GIVEN AWAY' if broken else 'nothing speaks against it'}")
    return int(broken)


def pairs_of(inputs: int) -> list[tuple[int, int]]:
    """Return pairs of inputs that cover neighbours, ends, and the last one, which is missing in a survey."""
    last = inputs - 1
    wanted = [(0, 1), (0, last), (0, last // 2), (last // 2, last), (last // 2, last // 2 + 1), (1, last - 1)]
    return sorted({(min(pair), max(pair)) for pair in wanted if pair[0] != pair[1]})[:_PAIRS]


def _symbols(symbols: Any) -> list[Any]:  # noqa: ANN401 - numbers, or rows of bytes
    return [row.tobytes() for row in symbols] if symbols.ndim == 2 else symbols.tolist()


def _called(function: Any, x: int, path: str) -> Any:  # noqa: ANN401 - anybody's
    try:
        return function(x)
    except Exception as error:
        raise DeployError(
            f"--callable {path} must take an input, got {type(error).__name__} of {x}"
        ) from error


def _function(path: str) -> Any:  # noqa: ANN401 - anybody's
    module, colon, name = path.partition(":")
    if not colon or not all(part.isidentifier() for part in module.split(".")):
        raise DeployError(f"--callable must be MODULE:FUNCTION, got {path!r}")
    sys.path.insert(0, "")
    try:
        found = getattr(importlib.import_module(module), name, None)
    except Exception as error:  # whatever a module does when it is imported
        raise DeployError(f"--callable {path}: cannot be imported: {error}") from None
    if not callable(found):
        raise DeployError(f"--callable must name a function, got {path!r}")
    return found
