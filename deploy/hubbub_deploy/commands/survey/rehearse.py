"""`hubbub survey rehearse`: what a device is asked, answers and sends, with values that are nobody's."""

from __future__ import annotations

import argparse
from pathlib import Path

from hubbub.survey import number_of_round
from hubbub_deploy.commands.arguments import add_dictionary, positive, take_dictionaries
from hubbub_deploy.errors import DeployError
from hubbub_deploy.files import load_survey, writing


def add_to(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the verb."""
    rehearse = verbs.add_parser(
        "rehearse", help="run a survey through one device in memory: nothing is sent anywhere or counted"
    )
    rehearse.add_argument("survey", type=Path, metavar="SURVEY", help="a survey file, - for stdin")
    rehearse.add_argument(
        "--value",
        action="append",
        default=[],
        metavar="ATTRIBUTE=VALUE",
        help="a value to answer with, nobody's own; may be repeated; an attribute without one is missing",
    )
    add_dictionary(rehearse)
    rehearse.add_argument("--budget", type=float, default=4.0, help="lifetime epsilon (default: %(default)g)")
    rehearse.add_argument("--rounds", type=positive, help="from the first (default: all, at most 100)")
    rehearse.add_argument("--page", type=Path, metavar="FILE", help="write the owner's page (HTML)")
    rehearse.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Run it, and return its exit code."""
    from hubbub_client import ClientError  # noqa: PLC0415 - other verbs start without a device
    from hubbub_client.testing import rehearse  # noqa: PLC0415
    from hubbub_deploy.commands.agent import value_of  # noqa: PLC0415

    survey = load_survey(options.survey)
    known = {attribute.id: attribute for attribute in survey.attributes}
    values = {}
    for word in options.value:
        attribute_id, equals, text = word.partition("=")
        if not equals:
            raise DeployError(f"--value must be ATTRIBUTE=VALUE, got {word!r}")
        if attribute_id not in known:
            raise DeployError(f"--value must name an attribute of the survey, got {attribute_id!r}")
        found = value_of(known[attribute_id], text)
        values[attribute_id] = text if found is None else found  # refused there, with its rule
    take_dictionaries(options.dictionary, survey.attributes, values)
    try:
        shown = rehearse(survey, values, budget=options.budget, rounds=options.rounds)
    except ClientError as error:
        raise DeployError(str(error)) from None
    print(f"asked: {survey.title}, about {', '.join(known)}")
    reason = "" if shown.enrolment.reason is None else f": {shown.enrolment.reason}"
    print(f"a device with a budget of {options.budget:g}: {shown.enrolment.status}{reason}")
    for report in shown.sent:
        print(f"round {number_of_round(report.round)}: sends {report.data.hex()}, costs {report.loss:.3f}")
    account = shown.account
    print(f"spent {account.loss:.3f}, reserved {account.reserved:.3f}, left {account.left:.3f}")
    if options.page is not None:
        with writing(options.page):
            options.page.write_text(shown.page, encoding="utf-8")
        print(f"the owner's page: {options.page}")
    return 0
