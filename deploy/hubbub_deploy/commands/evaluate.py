"""`hubbub evaluate`: what a question costs and buys, measured on simulated devices before any real one."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from hubbub_deploy.commands.arguments import (
    add_dictionary,
    add_spelling,
    positive,
    spelling,
    take_dictionaries,
    whole,
)
from hubbub_deploy.errors import DeployError
from hubbub_deploy.files import refuse_unwritable, writing

if TYPE_CHECKING:
    from hubbub_lab.evaluate import CaseKey, EvaluationPlan

EXAMPLES = """\
what people ask first:
  hubbub evaluate visits.toml --data people.csv --out report.html
  hubbub evaluate --data people.csv:age --mechanisms auto,grr,subset --epsilon 0.5,1,2 --devices 10000,1000000
  hubbub evaluate --data zipf:100 --categories 5 --mechanisms auto,pb-grr --faults loss=0.1,fakes=0.01 \\
      --json figures.json
"""

_Item = TypeVar("_Item")


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    command = commands.add_parser(
        "evaluate",
        help="mechanisms, epsilons, sizes, data sets and faults, measured beside exact errors: one report",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.add_argument(
        "survey",
        nargs="?",
        type=Path,
        metavar="SURVEY",
        help="a survey file (TOML); without one, --data asks",
    )
    command.add_argument(
        "--data",
        action="append",
        default=[],
        metavar="DATA",
        help="FILE:COLUMN, zipf:K[:EXPONENT] or uniform:K; with a survey FILE, zipf or uniform, whose values "
        "are the survey's; may be repeated (default with a survey: uniform)",
    )
    command.add_argument(
        "--mechanisms",
        metavar="NAMES",
        help="with commas between; auto chooses, own is the survey's (default: own, without a survey auto)",
    )
    command.add_argument(
        "--epsilon", metavar="NUMBERS", help="with commas between (default: the survey's, without one 1)"
    )
    command.add_argument(
        "--devices",
        metavar="NUMBERS",
        help="with commas between (default: a file's rows; of a law the planned devices, or 10000)",
    )
    command.add_argument(
        "--faults",
        default="none",
        metavar="FAULTS",
        help="loss, duplicates, skew, fakes or drift=SHARE, one after another with commas between, those "
        "that happen together with +; none is always among them",
    )
    command.add_argument(
        "--categories", type=positive, metavar="N", help="without a survey: ask for N groups of values, too"
    )
    command.add_argument(
        "--repeats", type=positive, help="rounds of each case (default: 200,000 reports, 1 to 20 rounds)"
    )
    add_spelling(command)
    add_dictionary(command)
    command.add_argument("--seed", type=whole, help="make the run repeatable")
    command.add_argument("--out", type=Path, metavar="FILE", help="write the report (HTML) here")
    command.add_argument("--json", type=Path, metavar="FILE", help="write all figures here; - for stdout")
    command.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Run it, and return its exit code.

    Raises:
        DeployError: If an option breaks its rule, a file cannot be read or written, or a mechanism does not
            fit.
        SurveyError: If a survey does not compile.
    """
    import time  # noqa: PLC0415 - others need none of these

    from hubbub_lab.evaluate import (  # noqa: PLC0415
        EvaluationResults,
        evaluate,
        page_of,
    )
    from hubbub_lab.texts import results as stdout  # noqa: PLC0415
    from hubbub_lab.texts import talk as stderr  # noqa: PLC0415

    talk = stderr()
    plan = plan_of(options, say=talk.print)
    for path in (options.out, options.json):
        if path is not None and str(path) != "-":
            refuse_unwritable(path, kind="file")
    talk.print(f"{plan.cases():,} {'case' if plan.cases() == 1 else 'cases'}, {plan.reports:,} reports")
    began = time.perf_counter()
    cases = list(evaluate(plan, tell=lambda *told: talk.print(_progress(*told))))
    results = EvaluationResults.of(cases, seed=plan.seed, seconds=time.perf_counter() - began)
    if options.out is not None:
        _write(options.out, page_of(results))
    if options.json is not None and str(options.json) != "-":
        _write(options.json, results.text())
    if str(options.json) == "-":
        print(results.text())
    else:
        results.show(stdout())
    return 0


def plan_of(options: argparse.Namespace, *, say: Callable[[str], None]) -> EvaluationPlan:
    """Return what the options ask for.

    Raises:
        DeployError: If one of them breaks its rule.
    """
    from hubbub_lab.evaluate import (  # noqa: PLC0415 - as in run  # noqa: PLC0415
        AUTO,
        OWN,
        DataSpec,
        EvaluationPlan,
        FaultMix,
        SurveyMaker,
        data_set,
        drafted,
        mechanism_name,
    )

    sizes = _listed("--devices", options.devices, _devices) if options.devices else ()
    mechanisms = _listed(
        "--mechanisms", options.mechanisms or (OWN if options.survey else AUTO), mechanism_name
    )
    faults = _listed("--faults", options.faults, FaultMix.parse)
    if FaultMix() not in faults:
        faults = (FaultMix(), *faults)
    specs = [_parsed("--data", text, DataSpec.parse) for text in options.data]
    questions, written = [], spelling(options)
    if options.survey is None:
        if not specs:
            raise DeployError("a survey or --data must be given, got neither")
        if options.dictionary:
            raise DeployError("--dictionary must come with a survey, got none")
        if OWN in mechanisms:
            raise DeployError("--mechanisms own must come with a survey, got none")
        for spec in specs:
            attribute = drafted(spec, options.categories, spelling=written, say=say)
            maker = SurveyMaker.of_attribute(attribute, spec.text, devices=max(sizes, default=10_000))
            found = data_set(spec, maker.attributes, spelling=written, say=say)
            questions.append((found, maker, sizes or (found.rows or 10_000,)))
    else:
        if options.categories is not None:
            raise DeployError(f"--categories must be absent with a survey, got {options.categories}")
        maker = SurveyMaker.of_file(options.survey, devices=max(sizes, default=None))
        texts = maker.attributes if any(spec.law is None for spec in specs) else ()
        take_dictionaries(options.dictionary, maker.attributes, {each.id for each in texts})
        if maker.chooses:
            mechanisms = tuple(dict.fromkeys(AUTO if name == OWN else name for name in mechanisms))
        for spec in specs or [DataSpec.parse("uniform")]:
            found = data_set(spec, maker.attributes, spelling=written, say=say)
            questions.append((found, maker, sizes or (found.rows or maker.planned_devices,)))
    epsilons = (
        _listed("--epsilon", options.epsilon, _epsilon) if options.epsilon else (questions[0][1].epsilon,)
    )
    return EvaluationPlan(tuple(questions), mechanisms, epsilons, faults, options.repeats, options.seed)


def _listed(option: str, text: str, read: Callable[[str], _Item]) -> tuple[_Item, ...]:
    """Return the different items of a list with commas between."""
    return tuple(dict.fromkeys(_parsed(option, item.strip(), read) for item in text.split(",")))


def _parsed(option: str, text: str, read: Callable[[str], _Item]) -> _Item:
    try:
        return read(text)
    except (ValueError, argparse.ArgumentTypeError) as error:
        raise DeployError(f"{option}: {error}") from None


def _devices(text: str) -> int:
    from hubbub.survey import MAX_DEVICES  # noqa: PLC0415 - as in run

    number = positive(text)
    if number > MAX_DEVICES:
        raise ValueError(f"must be at most {MAX_DEVICES}, got {text!r}")
    return number


def _epsilon(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0.0 < number < math.inf:
        raise ValueError(f"must be a finite number above 0, got {text!r}")
    return number


def _progress(done: int, cases: int, key: CaseKey) -> str:
    return (
        f"{done + 1} of {cases}: {key.data}, {key.devices:,} devices, {key.mechanism}, "
        f"epsilon {key.epsilon:g}, faults {key.faults.label}"
    )


def _write(path: Path, text: str) -> None:
    with writing(path):
        path.write_text(text, encoding="utf-8")
