"""`hubbub simulate`: devices from a table of people against a running node or cluster."""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from hubbub_deploy.commands.arguments import (
    add_dictionary,
    add_people,
    add_plain_http,
    add_read_token,
    add_result,
    columns,
    positive,
    rate,
    read_token,
    seconds,
    share,
    spelling,
    take_dictionaries,
    whole,
)
from hubbub_deploy.errors import DeployError
from hubbub_deploy.files import one_round_each, reading, words

if TYPE_CHECKING:
    from rich.console import Console

    from hubbub import Survey
    from hubbub_client import TokenIssuer
    from hubbub_lab.evaluation import Evaluation
    from hubbub_lab.simulation import SentRound, Session, UploadCounts


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    simulate = commands.add_parser(
        "simulate", help="devices from a table of people, against a running node or cluster"
    )
    simulate.add_argument(
        "people",
        type=Path,
        metavar="CSV",
        help="one device per row, with a header; .gz, .parquet or -",
    )
    simulate.add_argument("--collector", required=True, metavar="URL", help="where devices send reports")
    simulate.add_argument(
        "--dashboard", metavar="URL", help="where releases are shown (default: the collector, as on a node)"
    )
    add_read_token(simulate, "file of the token that --compare shows to the dashboard")
    simulate.add_argument(
        "--survey", action="append", default=[], metavar="ID", help="answer only this one; may be repeated"
    )
    add_people(simulate)
    add_dictionary(simulate)
    simulate.add_argument("--rounds", type=positive, default=1, help="how many to answer (default: 1)")
    simulate.add_argument("--rate", type=rate, metavar="UPLOADS", help="a second (default: as fast as taken)")
    for name, text in (
        ("drift", "share of devices that hold another device's evolving values in the next round"),
        ("loss", "share of reports that never arrive"),
        ("duplicates", "share of uploads that are sent twice"),
    ):
        simulate.add_argument(f"--{name}", type=share, default=0.0, metavar="SHARE", help=text)
    simulate.add_argument(
        "--fakes",
        type=share,
        default=0.0,
        metavar="SHARE",
        help="reports of liars, for every honest device; they claim the first value",
    )
    simulate.add_argument(
        "--issuer", metavar="NAME=KEY", help="issuer of the tokens that the collector asks for"
    )
    simulate.add_argument("--issuer-url", metavar="URL", help="where that issuer is")
    simulate.add_argument(
        "--credentials",
        type=Path,
        metavar="FILE",
        help="a credential a line, one for each device; the lines beyond are in the hands of liars",
    )
    simulate.add_argument(
        "--quantity", type=positive, default=4, help="tokens of a device in a period (default: %(default)s)"
    )
    add_plain_http(simulate)
    simulate.add_argument(
        "--budget", type=float, help="lifetime epsilon of each device (default: what the surveys need)"
    )
    simulate.add_argument(
        "--patience",
        type=seconds,
        default=30.0,
        metavar="SECONDS",
        help="how long a collector that is still starting is waited for (default: %(default)g)",
    )
    simulate.add_argument("--seed", type=whole, help="make what the devices draw repeatable")
    simulate.add_argument(
        "--compare", action="store_true", help="wait for the releases, and set them beside the truth"
    )
    add_result(simulate)
    simulate.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Run it, and return its exit code."""
    from hubbub_client import ClientError  # noqa: PLC0415 - see above
    from hubbub_client.upload import checked_url  # noqa: PLC0415 - see above
    from hubbub_lab import texts  # noqa: PLC0415 - others need no server library
    from hubbub_lab.simulation import fetch_surveys, released  # noqa: PLC0415 - see above

    talk = texts.talk()
    token = read_token(options)
    if options.budget is not None and not 0.0 < options.budget < math.inf:
        raise DeployError(f"--budget must be above 0 and finite, got {options.budget:g}")
    try:
        checked_url(options.collector, plain_http=options.plain_http)
        if options.dashboard is not None:
            checked_url(options.dashboard, "dashboard", plain_http=options.plain_http)
        issuer = _issuer(options)
        served = fetch_surveys(options.collector, patience_s=options.patience, say=talk.print)
        surveys = _chosen(served, options.survey)
        session = _session(options, surveys, talk, issuer)
        _enrol(session, talk)
        sent, counts = _answer(session, options.rounds, talk)
        evaluations = []
        if options.compare:
            for each in sent:
                talk.print(_waiting(each.survey, each.round))
                url = options.dashboard or options.collector
                evaluations.append(released(url, each, token=token, clock=time.time, wait=time.sleep))
    except ClientError as error:
        raise DeployError(str(error)) from None
    _show(options, sent, counts, evaluations)
    return 0 if sent else 1


def _chosen(served: Sequence[Survey], ids: Sequence[str]) -> list[Survey]:
    """Return the surveys that were asked for, all that are served where none was named."""
    if not served:
        raise DeployError("the collector must serve a survey, got none")
    known = {survey.id for survey in served}
    if strange := sorted(set(ids) - known):
        raise DeployError(f"--survey must name one of {', '.join(sorted(known))}, got {', '.join(strange)}")
    return [survey for survey in served if not ids or survey.id in ids]


def _session(
    options: argparse.Namespace,
    surveys: Sequence[Survey],
    talk: Console,
    issuer: tuple[TokenIssuer, list[str]] | None,
) -> Session:
    from hubbub_client.surveys import most_answers  # noqa: PLC0415 - see above
    from hubbub_lab.evaluation import columns_of, quality, read_people, values_of  # noqa: PLC0415 - see above
    from hubbub_lab.simulation import Session, TokenPool, Traffic  # noqa: PLC0415 - see above

    one_round_each(surveys)
    asked = [each for survey in surveys for each in survey.attributes]
    attributes = {each.id: each for each in asked}
    take_dictionaries(options.dictionary, asked, attributes)
    chosen = columns_of(list(attributes.values()), columns(options.column))
    table = read_people(
        options.people,
        sorted(set(chosen.values())),
        spelling=spelling(options),
        say=talk.print,
        progress=lambda rows: talk.print(f"{rows:,} rows read"),
    )
    people = {}
    for name, attribute in attributes.items():
        values = values_of(attribute, table[chosen[name]], clip=options.clip)
        if said := quality(chosen[name], values):
            talk.print(said)
        people[name] = values.held
    if not len(next(iter(people.values()))):
        raise DeployError(f"{options.people}: must hold at least one row, got none")
    needed = sum(survey.epsilon * most_answers(survey, -1) for survey in surveys)
    return Session(
        options.collector,
        surveys,
        people,
        traffic=Traffic(
            rate=options.rate,
            drift=options.drift,
            loss=options.loss,
            duplicates=options.duplicates,
            fakes=options.fakes,
        ),
        budget=needed if options.budget is None else options.budget,
        seed=options.seed,
        clock=time.time,
        wait=time.sleep,
        tokens=None if issuer is None else TokenPool(*issuer, len(next(iter(people.values())))),
    )


def _issuer(options: argparse.Namespace) -> tuple[TokenIssuer, list[str]] | None:
    """Return the issuer of the devices' tokens and their credentials, None where the collector asks for none.

    Raises:
        ClientError: If the issuer breaks a rule.
        DeployError: If one of issuer, URL and credentials is missing, or the file cannot be read.
    """
    from hubbub_client import TokenIssuer  # noqa: PLC0415 - see above

    given = (options.issuer, options.issuer_url, options.credentials)
    if given == (None, None, None):
        return None
    if None in given:
        raise DeployError("--issuer, --issuer-url and --credentials must be given together")
    name, _, key = options.issuer.partition("=")
    with reading(options.credentials):
        credentials = words(options.credentials)
    first = credentials[0] if credentials else ""
    issuer = TokenIssuer(
        options.issuer_url, name, key, first, quantity=options.quantity, plain_http=options.plain_http
    )
    return issuer, credentials


def _enrol(session: Session, talk: Console) -> None:
    """Ask every device to take part, and say who does and what a survey waits for.

    Raises:
        DeployError: If no device takes part in any survey.
    """
    from hubbub.survey import survey_state  # noqa: PLC0415 - see above

    found = session.enrol()
    for survey in session.surveys:
        enrolment = found[survey.digest]
        why = f" (others: {enrolment.reason.replace('_', ' ')})" if enrolment.reason else ""
        talk.print(
            f"{survey.id}: {int(enrolment.accepted.sum()):,} of {session.devices:,} devices take part{why}; "
            f"{survey_state(survey, time.time()).words}",
            markup=False,
        )
    if not any(enrolment.accepted.any() for enrolment in found.values()):
        raise DeployError("a device must take part in a survey, got none that does")


def _answer(session: Session, rounds: int, talk: Console) -> tuple[list[SentRound], list[UploadCounts]]:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn  # noqa: PLC0415 - see above

    from hubbub.survey import round_words  # noqa: PLC0415 - see above

    sent: list[SentRound] = []
    counts: list[UploadCounts] = []
    shown = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("uploads"))
    with Progress(*shown, console=talk, transient=True) as progress:
        task = progress.add_task("waiting for a round", total=None)

        def told(done: int, total: int) -> None:
            progress.update(task, description="uploading", completed=done, total=total)

        for these, taken in session.rounds(rounds, progress=told):
            sent += these
            counts.append(taken)
            for each in these:
                lost = f", {each.lost:,} lost" if each.lost else ""
                forged = f", {each.forged:,} forged" if each.forged else ""
                forged += f", {each.without_token:,} without a token" if each.without_token else ""
                forged += f", {each.refused:,} refused" if each.refused else ""
                talk.print(
                    f"{each.survey.id}, {round_words(each.survey, each.round)}: "
                    f"{each.honest:,} sent{lost}{forged}"
                )
            if any(each.refused for each in these):
                outcomes = ", ".join(f"{outcome} {count:,}" for outcome, count in taken.outcomes.items())
                talk.print(f"reports by the collector's answer: {outcomes}")
            if taken.given_up:
                reasons = ", ".join(f"{why} {count:,}" for why, count in taken.failures.items())
                talk.print(f"{len(taken.given_up):,} devices were not answered: {reasons}")
            progress.update(task, description="waiting for the next round", completed=0, total=None)
    return sent, counts


def _waiting(survey: Survey, number: int) -> str:
    from hubbub.survey import duration_words, round_words  # noqa: PLC0415 - see above

    left_s = survey.round_end_s(number) + survey.lateness_s - time.time()
    when = f"in {duration_words(left_s)}" if left_s > 0 else "any moment"
    return f"{survey.id}, {round_words(survey, number)}: its release is due {when}"


def _show(
    options: argparse.Namespace,
    sent: list[SentRound],
    counts: list[UploadCounts],
    evaluations: list[Evaluation],
) -> None:
    from hubbub.survey import number_of_round  # noqa: PLC0415 - see above
    from hubbub_lab import texts  # noqa: PLC0415 - see above
    from hubbub_lab.evaluation import print_json, show  # noqa: PLC0415 - see above

    if options.json:
        print_json(
            {
                "rounds": [
                    {
                        "survey": each.survey.id,
                        "digest": each.survey.digest.hex(),
                        "round": number_of_round(each.round),
                        "devices": each.devices,
                        "sent": each.honest,
                        "lost": each.lost,
                        "forged": each.forged,
                        "without_token": each.without_token,
                        "refused": each.refused,
                    }
                    for each in sent
                ],
                "uploads": sum(each.uploads for each in counts),
                "retries": sum(each.retries for each in counts),
                "evaluations": [evaluation.as_json() for evaluation in evaluations],
            }
        )
        return
    if evaluations:
        show(evaluations, rows="all" if options.all else "most frequent", console=texts.results())
        for each, evaluation in zip(sent, evaluations, strict=True):
            if text := _uncounted(each, evaluation):
                print(text)
    else:
        rounds = "1 round" if len(sent) == 1 else f"{len(sent)} rounds"
        print(f"{sum(each.honest for each in sent):,} reports sent in {rounds}")


def _uncounted(each: SentRound, evaluation: Evaluation) -> str:
    """Return how the devices of a release differ from those whose truth is beside it; "" if in nothing."""
    from hubbub.survey import round_words  # noqa: PLC0415 - see above

    counted, parts = int(evaluation.release["devices"]), []
    if each.absent:
        parts.append(f"{each.absent:,} of {each.devices:,} people were not counted")
    if each.forged:
        parts.append(f"{each.forged:,} reports of liars were sent, and are no part of the truth")
    if counted != each.honest + each.forged:
        parts.append(f"the release has {counted:,} reports where {each.honest + each.forged:,} were taken")
    return f"{each.survey.id}, {round_words(each.survey, each.round)}: {'; '.join(parts)}" if parts else ""
