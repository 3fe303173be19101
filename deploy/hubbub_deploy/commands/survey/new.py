"""`hubbub survey new`: write a survey file to begin with."""

from __future__ import annotations

import argparse
import dataclasses
import re
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from hubbub_deploy.commands.arguments import duration, positive
from hubbub_deploy.errors import DeployError
from hubbub_deploy.files import create

if TYPE_CHECKING:
    from hubbub_authoring.files import DraftAttribute, DraftCategory

DAY_S: Final = 86_400
PRESETS: Final = ("telemetry",)
_ASKED: Final = ("id", "title", "epsilon", "attribute", "category", "labels", "integer", "number")
_NUMBER: Final = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
_RANGE: Final = re.compile(rf"({_NUMBER})\.\.({_NUMBER})")

EXAMPLES: Final = """\
what people ask first:
  hubbub survey new --id transport --epsilon 1 --labels car,bike,train --out transport.toml
  hubbub survey new --id visits --epsilon 2 --integer 0 77 --out visits.toml
  hubbub survey new --id visits --epsilon 2 --integer 0 77 \\
      --category none=0 --category some=1..77 --out visits.toml
  hubbub survey new --id hours --epsilon 1 --number 0 24 --out hours.toml
  hubbub survey new --id age-by-sex --epsilon 2 --attribute age=18..99 --attribute sex=f,m --kind static \\
      --category age:young=18..39 --category age:old=40..99 --out age-by-sex.toml
an app's version, system, a feature and a size, with the host's code:
  hubbub survey new --preset telemetry --out telemetry
to try it at once: --start now --round 2m --rounds 5
"""


def add_to(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the verb to `hubbub survey`."""
    new = verbs.add_parser(
        "new",
        help="write a commented survey file that compiles, to begin with",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    new.add_argument("--id", help="1 to 64 of a-z 0-9 . - _")
    new.add_argument("--title", help="what people read (default: the id)")
    new.add_argument("--epsilon", type=float, help="of one report, at most")
    new.add_argument(
        "--preset",
        choices=PRESETS,
        help="four small surveys about an app, and the code that answers them, into the folder --out",
    )
    new.add_argument(
        "--attribute",
        action="append",
        default=[],
        metavar="ID[=VALUES]",
        help="id of the attribute that it asks for (default: the survey's id); with values, ID=LOW..HIGH or "
        "ID=LABEL,LABEL, it may be repeated: a table",
    )
    new.add_argument(
        "--tables",
        choices=("pairs", "single"),
        help="a bundle: the tables of every two of the attributes, or each alone, and a device answers one",
    )
    new.add_argument(
        "--kind",
        choices=("static", "evolving"),
        default="evolving",
        help="answered once, or anew every round (default: %(default)s)",
    )
    domain = new.add_mutually_exclusive_group()
    domain.add_argument("--integer", nargs=2, type=int, metavar=("LOW", "HIGH"))
    domain.add_argument("--number", nargs=2, type=float, metavar=("LOW", "HIGH"))
    domain.add_argument(
        "--labels", nargs="+", metavar="LABEL", help="one word of labels with commas between, or one each"
    )
    new.add_argument(
        "--category",
        action="append",
        default=[],
        metavar="[ID:]NAME=VALUES",
        help="a named group of values, LOW..HIGH or VALUE,VALUE; may be repeated; ID: in a table",
    )
    new.add_argument(
        "--start",
        type=_start,
        metavar="now|midnight|TIME",
        help="when the first round begins: now, at the next midnight (UTC; the default), or a time such as "
        "2026-01-01T00:00:00Z",
    )
    new.add_argument(
        "--round", type=duration, default=DAY_S, metavar="DURATION", help="90s, 15m, 24h, 7d (default: 1d)"
    )
    new.add_argument("--rounds", type=positive, default=1, help="default: %(default)s")
    new.add_argument("--devices", type=positive, default=10_000, help="expected (default: %(default)s)")
    new.add_argument(
        "--minimum-cohort",
        type=positive,
        metavar="DEVICES",
        help="fewer accepted reports than this release nothing (default: the least at which the survey's "
        "intervals hold)",
    )
    new.add_argument("--out", type=Path, required=True, help="file to write, - for stdout; never overwritten")
    new.set_defaults(run=run, misuse=new.error)


def run(options: argparse.Namespace) -> int:
    """Write the file, say when the survey begins, and return the exit code."""
    from hubbub.survey import survey_state  # noqa: PLC0415 - other verbs start without it
    from hubbub_authoring import files  # noqa: PLC0415 - see above
    from hubbub_authoring.files import Draft  # noqa: PLC0415 - see above

    if options.preset is not None:
        return _preset(options)
    if options.id is None or options.epsilon is None:
        options.misuse("the following arguments are required: --id, --epsilon (or --preset)")
    now_s = time.time()
    midnight_s = (int(now_s) // DAY_S + 1) * DAY_S
    text, survey = files.drafted(
        Draft(
            id=options.id,
            title=options.title or options.id,
            epsilon=options.epsilon,
            attributes=_attributes(options),
            tables=options.tables,
            kind=options.kind,
            devices=options.devices,
            minimum_cohort=options.minimum_cohort,
            rounds=options.rounds,
            round_s=options.round,
            start_s=midnight_s if options.start is None else options.start,
        )
    )
    if str(options.out) == "-":
        sys.stdout.write(text)
        return 0
    create(options.out, text.encode(), mode=0o666)
    said = survey_state(survey, now_s).words
    print(f"{options.out}: {said}. Read it, then: hubbub survey check {options.out}")
    return 0


def _preset(options: argparse.Namespace) -> int:
    from hubbub_deploy.commands.survey import preset  # noqa: PLC0415 - other verbs start without it

    if any(getattr(options, name) for name in _ASKED):
        options.misuse("--preset states its own questions: leave --id, --epsilon and what is asked out")
    print(*preset.write(options.out, devices=options.devices, start_s=options.start), sep="\n")
    return 0


def _start(text: str) -> int | None:
    """Return when the first round begins, seconds since 1970; None for the next midnight."""
    if text == "now":
        return int(time.time())
    if text == "midnight":
        return None
    rule = "must be now, midnight or a time such as 2026-01-01T00:00:00Z"
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{rule}, got {text!r}") from None
    if moment.tzinfo is None:
        raise argparse.ArgumentTypeError(f"{rule}, with Z or an offset, got {text!r}")
    return int(moment.astimezone(UTC).timestamp())


def _attributes(options: argparse.Namespace) -> tuple[DraftAttribute, ...]:
    """Return the attributes that the options describe, with their categories."""
    from hubbub_authoring.files import DraftAttribute  # noqa: PLC0415 - see above

    described = [text for text in options.attribute if "=" in text]
    values = next((v for v in (options.integer, options.number, options.labels) if v is not None), None)
    if bool(described) == (values is not None):
        options.misuse("one of --integer, --number, --labels or --attribute ID=VALUES is required")
    if len(options.attribute) > max(len(described), 1):
        options.misuse("--attribute must be ID=VALUES where there are several, got " + options.attribute[0])
    if described:
        found = [_described(text) for text in described]
    else:
        name = options.attribute[0] if options.attribute else options.id
        if options.labels is not None:
            found = [DraftAttribute(id=name, type="label", labels=_labels(options.labels))]
        else:
            low, high = options.integer or options.number
            found = [
                DraftAttribute(id=name, type="integer" if options.integer else "number", low=low, high=high)
            ]
    return tuple(_with_categories(attribute, options.category, found) for attribute in found)


def _labels(words: list[str]) -> tuple[str, ...]:
    """Return the labels of one word with commas between them, or of several words as they stand."""
    if len(words) > 1:
        return tuple(words)
    return tuple(label.strip() for label in words[0].split(","))


def _described(text: str) -> DraftAttribute:
    """Return the attribute of ID=LOW..HIGH or ID=LABEL,LABEL."""
    from hubbub_authoring.files import DraftAttribute  # noqa: PLC0415 - see above

    name, _, values = text.partition("=")
    if (found := _RANGE.fullmatch(values)) is None:
        return DraftAttribute(id=name, type="label", labels=_labels([values]))
    if all(re.fullmatch(r"[+-]?\d+", end) for end in found.groups()):
        return DraftAttribute(id=name, type="integer", low=int(found[1]), high=int(found[2]))
    return DraftAttribute(id=name, type="number", low=float(found[1]), high=float(found[2]))


def _with_categories(
    attribute: DraftAttribute, texts: list[str], known: list[DraftAttribute]
) -> DraftAttribute:
    ids = {each.id for each in known}
    categories = []
    for text in texts:
        named, found, values = text.partition("=")
        owner, colon, name = named.partition(":")
        if not colon and len(ids) == 1:
            owner, name = attribute.id, named
        if not (found and name and owner in ids):
            place = f"ID:NAME=VALUES, ID one of {', '.join(sorted(ids))}" if len(ids) > 1 else "NAME=VALUES"
            raise DeployError(f"--category must be {place}, got {text!r}")
        if attribute.type == "number":
            raise DeployError(f"--category must be absent for a number, which has none, got {text!r}")
        if owner == attribute.id:
            categories.append(_category(attribute, name, values, text))
    return dataclasses.replace(attribute, categories=tuple(categories))


def _category(attribute: DraftAttribute, name: str, values: str, text: str) -> DraftCategory:
    from hubbub_authoring.files import DraftCategory  # noqa: PLC0415 - see above

    if attribute.type == "label":
        return DraftCategory(name, _labels([values]))
    try:
        low, dots, high = values.partition("..")
        if dots:
            return DraftCategory(name, range=(int(low), int(high)))
        return DraftCategory(name, tuple(int(value) for value in values.split(",")))
    except ValueError:
        raise DeployError(
            f"--category must name integers as LOW..HIGH or VALUE,VALUE, got {text!r}"
        ) from None
