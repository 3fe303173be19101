"""`hubbub survey consent`: texts that tell people what a survey asks, to begin with."""

from __future__ import annotations

import argparse
import json
import math
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from hubbub_deploy.commands.survey.given_up import answers
from hubbub_deploy.files import load_survey

if TYPE_CHECKING:
    from hubbub import Survey

_DAY_S: Final = 86_400
# More than this, and "at most so sure" says nothing that a reader could use.
_SURE_PERCENT: Final = 99.9
TEXTS: Final = {
    "dialog": """\
May this app help [organisation] learn «{title}»? It would send an answer about {asked} that is mixed with
chance on this device, {often}. You can stop at any time.""",
    "privacy page": """\
With your consent, this app takes part in the survey «{title}» from {first} to {last}. It asks about {asked}.
The true value stays on your device. The app draws an answer by chance, {often}: it may be another value than
yours. {learned} That holds whatever else the reader knows, and for all answers of this survey together.
Results are published about groups of at least {cohort:,} answers. You can see every answer that was sent,
pause, leave, or erase what the device keeps, in [where in the app]. What was sent carries no name and cannot
be taken back.""",
    "record": """\
Processing: the survey «{title}» (id {id}, version {version}, digest {digest})
Controller: [name and contact]
Purpose: [what is learned, and what for]
Legal basis: [consent, or another; why]
Data on devices: {asked}; the answers sent; how much of the privacy budget is spent
Data on servers: randomised answers with random identifiers; counts; addresses in [access logs, how long]
Measure: local differential privacy, epsilon at most {epsilon:g} per device for the whole survey
Certified: from the integers that devices sample, epsilon at most {each:g} for one answer
Published: frequencies of at least {cohort:,} answers, with intervals
Period: {first} to {last}; reports are kept for [retention: log_keep_s of the server]
Recipients: [who reads the releases]""",
    "beware": """\
Noise on the device lowers the risk of an answer. It does not replace a legal basis or a person's consent
where the law asks for one: devices still process personal data, and the server sees that a device answered
and from which address. These texts are a draft by people who are no lawyers. Fill what stands in
[brackets].""",
}


def add_to(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the verb."""
    consent = verbs.add_parser("consent", help="a dialog, a privacy page's paragraph and a record, as drafts")
    consent.add_argument("file", type=Path, help="a survey file, - for stdin")
    consent.add_argument("--json", action="store_true", help="print the texts as JSON")
    consent.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print the texts, and return the exit code."""
    texts = consent_texts(load_survey(options.file))
    if options.json:
        print(json.dumps(texts, ensure_ascii=False))
    else:
        print("\n\n".join(f"{name.upper()}\n{text}" for name, text in texts.items()))
    return 0


def consent_texts(survey: Survey) -> dict[str, str]:
    """Return the texts of a survey by name: dialog, privacy page, record, beware.

    Numbers come from the survey as compiled: the epsilon is the certified one, rounded up. One that evolves
    counts once for each round; a device's filter may find that less was spent.
    """
    static = all(attribute.kind == "static" for attribute in survey.attributes)
    each = math.ceil(survey.channel.epsilon * 1_000) / 1_000
    epsilon = each * answers(survey)
    facts = {
        "title": survey.title,
        "id": survey.id,
        "version": survey.version,
        "digest": survey.digest.hex(),
        "asked": ", ".join(f"«{attribute.id}»" for attribute in survey.attributes),
        "often": _often(survey, static=static),
        "learned": _learned(epsilon),
        "epsilon": epsilon,
        "each": each,
        "cohort": survey.minimum_cohort,
        "first": _day(survey.round_start_s(0)),
        "last": _day(survey.round_end_s(survey.rounds - 1)),
    }
    joined = {name: text if name == "record" else text.replace("\n", " ") for name, text in TEXTS.items()}
    return {name: text.format(**facts) for name, text in joined.items()}


def _often(survey: Survey, *, static: bool) -> str:
    if survey.rounds == 1:
        return "once"
    period = (survey.round_start_s(1) - survey.round_start_s(0)) / _DAY_S
    every = f"every {period:g} days" if period > 1 else f"every {period * 24:g} hours"
    if survey.rotation > 1:
        span = survey.rotation * period
        every = f"once in {span:g} days" if span > 1 else f"once in {span * 24:g} hours"
    rounds = f"{every}, {survey.rounds if static else answers(survey)} times at most"
    return f"and sends the same answer {rounds}" if static else rounds


def _learned(epsilon: float) -> str:
    """Return what a reader can learn, in words: from even odds to at most e^epsilon to 1."""
    sure = math.ceil(1_000 / (1 + math.exp(-epsilon))) / 10
    if sure > _SURE_PERCENT:
        return "Somebody who reads all your answers could become nearly sure of your value. [Ask for less.]"
    return f"Somebody who thought a guess about you 50:50 can become at most {sure:g} % sure of it."


def _day(moment_s: int) -> str:
    moment = datetime.fromtimestamp(moment_s, UTC)
    return f"{moment.day} {moment:%B %Y}"
