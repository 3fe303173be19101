"""`hubbub agent`: a device from the command line, and what its owner may know and say.

`status` and `sent` show what was asked, the exact bytes that were sent, what anybody can at most have
learned from them, and what is left. No value is printed, and no answer before it was sent.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from pathlib import Path
from typing import Any

from hubbub.domain import Attribute, IntegerDomain, NumberDomain
from hubbub.survey import Survey
from hubbub_client import Agent, ClientError, CollectorError, Status
from hubbub_client.transport import Response
from hubbub_deploy.errors import DeployError


class _Offline:
    """A way to no collector: for commands that send nothing."""

    def get(self, path: str) -> Response:
        raise CollectorError(f"{path} is not asked for here")

    def post(self, path: str, body: bytes) -> Response:
        raise CollectorError(f"{len(body)} bytes for {path} are not sent here")

    def close(self) -> None:
        pass


def run(options: argparse.Namespace) -> int:
    """Runs one `hubbub agent` command and returns its exit code.

    Raises:
        DeployError: If the ledger or the collector refuses.
    """
    try:
        return _VERBS[options.verb](options)
    except ClientError as error:
        raise DeployError(str(error)) from None


def _open(options: argparse.Namespace) -> Agent:
    return Agent(options.ledger, "", budget=None, http=_Offline())


def _answer(options: argparse.Namespace) -> int:
    values = dict(_pair(text) for text in options.set)
    with Agent(options.ledger, options.collector, budget=options.budget) as agent:
        listed = agent.fetch_surveys()
        unknown = set(options.join) - {survey.id for survey in listed}
        if unknown:
            raise DeployError(f"--join must name a survey that the collector serves, got {min(unknown)!r}")
        by_attribute = {survey.attribute.id: survey.attribute for survey in listed}
        for attribute_id, text in values.items():
            if attribute_id not in by_attribute:
                raise DeployError(
                    f"--set must name an attribute that a survey asks for, got {attribute_id!r}"
                )
            attribute = by_attribute[attribute_id]
            agent.register(attribute)
            agent.set(attribute_id, _value(attribute, text))
        for survey in listed:
            if survey.id in options.join:
                agent.opt_in(survey)
                if survey.attribute.id not in values:
                    print(
                        f"hubbub: {survey.id} is joined without --set {survey.attribute.id}=...: "
                        "unless a value was pinned before, it is answered as missing",
                        file=sys.stderr,
                    )
        enrolments = [agent.enrol(survey) for survey in listed]
        # An evolving value is kept only for a round that waits for it: say it again, now that some may.
        for attribute_id, text in values.items():
            agent.set(attribute_id, _value(by_attribute[attribute_id], text))
        made = agent.answer()
        outcome = agent.upload()
        paused = agent.status().paused
    result: dict[str, Any] = {
        "paused": paused,
        "surveys": [
            {"id": e.survey_id, "version": e.version, "status": e.status, "reason": e.reason}
            for e in enrolments
        ],
        "answered": [{"survey": a.survey_id, "round": a.round, "report": a.id.hex()} for a in made],
        "settled": {report.hex(): said for report, said in outcome.settled.items()},
        "waiting": outcome.waiting,
        "failure": outcome.failure,
    }
    if options.json:
        print(json.dumps(result))
        return 0
    for enrolment in enrolments:
        said = f"refused: {enrolment.reason}" if enrolment.reason else enrolment.status.replace("_", " ")
        print(f"{enrolment.survey_id} version {enrolment.version}: {said}")
    for answer in made:
        print(f"answered {answer.survey_id}, round {answer.round}")
    if paused:
        print("paused: nothing is answered or sent until `hubbub agent resume`")
    print(f"{len(outcome.settled)} sent, {outcome.waiting} waiting" + _because(outcome.failure))
    return 0


def _because(failure: str | None) -> str:
    return f" ({failure})" if failure else ""


def _pair(text: str) -> tuple[str, str]:
    attribute, found, value = text.partition("=")
    if not found:
        raise DeployError("--set must be ATTRIBUTE=VALUE, got no =")  # never the text: it may be a value
    return attribute, value


def _value(attribute: Attribute, text: str) -> object:
    """What was typed, as the attribute's type; what cannot be read is missing."""
    try:
        if isinstance(attribute.domain, NumberDomain):
            return float(text)
        return int(text) if isinstance(attribute.domain, IntegerDomain) else text
    except ValueError:
        return None


def _status(options: argparse.Namespace) -> int:
    with _open(options) as agent:
        facts = account(agent)
    if options.json:
        print(json.dumps(facts, ensure_ascii=False))
        return 0
    print(facts["learned"])
    print(
        f"Budget {facts['budget']:g} for life: {facts['loss']:.3f} spent, "
        f"{facts['reserved']:.3f} reserved, {facts['left']:.3f} left."
    )
    if facts["paused"]:
        print("Paused: nothing is answered or sent until `hubbub agent resume`.")
    for survey in facts["surveys"]:
        print(f"\n{survey['title']} ({survey['id']} version {survey['version']}, {survey['state']})")
        print(f"  asked: {survey['asked']}")
        print(f"  {survey['learned']}")
    return 0


def account(agent: Agent) -> dict[str, Any]:
    """What an owner may know: what was asked, what was sent, what can have been learned, what is left."""
    status, sent = agent.status(), agent.sent()
    surveys = []
    for enrolled, survey in zip(status.enrolments, agent.surveys(), strict=True):
        reports = [report for report in sent if report.digest == enrolled.digest]
        loss = sum(report.loss for report in reports)
        surveys.append(
            {
                "id": survey.id,
                "version": survey.version,
                "digest": survey.digest.hex(),
                "title": survey.title,
                "asked": _asked(survey),
                "epsilon": survey.channel.epsilon,
                "state": enrolled.state,
                "rounds": survey.rounds,
                "answered": enrolled.answered,
                "sent": len(reports),
                "bytes": sum(len(report.data) for report in reports),
                "loss": loss,
                "learned": f"{len(reports)} sent in {survey.rounds} rounds"
                + (". " + _learned(loss, "From these alone") if reports else ", as far as is remembered."),
            }
        )
    return {**_totals(status), "surveys": surveys}


def _totals(status: Status) -> dict[str, Any]:
    return {
        "budget": status.budget,
        "loss": status.loss,
        "reserved": max(0.0, status.committed - status.loss),
        "left": max(0.0, status.budget - status.committed),
        "paused": status.paused,
        "waiting": status.waiting,
        "learned": _learned(status.loss, "From everything this device ever answered"),
    }


def _asked(survey: Survey) -> str:
    attribute, domain = survey.attribute, survey.attribute.domain
    if isinstance(domain, NumberDomain | IntegerDomain):
        values = f"a number from {domain.low:g} to {domain.high:g}"
    else:
        values = f"one of {attribute.size} labels"
    how = "once, the same noisy answer every round" if attribute.kind == "static" else "anew every round"
    return f"{attribute.id}, {values}, {how}, epsilon {survey.channel.epsilon:.3f}"


def _learned(loss: float, where: str) -> str:
    """A realised loss in words: it bounds the factor between prior and posterior odds of any two records."""
    if loss <= 0:
        return f"{where}, nobody has learned anything."
    factor = math.exp(min(loss, 700.0))
    text = f"{factor:.2f}" if factor < 100 else f"{factor:.3g}"
    return f"{where}, the odds between any two things about you change by a factor of at most {text}."


def _sent(options: argparse.Namespace) -> int:
    with _open(options) as agent:
        reports = agent.sent()
        waiting = agent.status().waiting
    if options.json:
        rows = [
            {
                "survey": report.survey_id,
                "round": report.round,
                "report": report.id.hex(),
                "bytes": report.data.hex(),
                "outcome": report.outcome,
                "loss": report.loss,
            }
            for report in reports
        ]
        print(json.dumps({"sent": rows, "waiting": waiting}))
        return 0
    for report in reports:
        print(f"{report.survey_id} round {report.round}: {report.outcome}")
        print(f"  {report.data.hex()}")
    if waiting:
        print(f"{waiting} more wait to be sent; they are shown when they were.")
    return 0


def _pause(options: argparse.Namespace) -> int:
    with _open(options) as agent:
        agent.pause()
    return _said(
        options, "Paused. Rounds that go by are not answered later; what is reserved stays reserved."
    )


def _resume(options: argparse.Namespace) -> int:
    with _open(options) as agent:
        agent.resume()
    return _said(options, "Running again.")


def _forget(options: argparse.Namespace) -> int:
    if not options.yes:
        raise DeployError(
            "forget erases every value, answer and waiting report and does not renew the budget; say --yes"
        )
    with _open(options) as agent:
        agent.forget()
        spent = agent.status().committed
    return _said(options, f"Forgotten. {spent:.3f} of the budget stays spent.")


def _said(options: argparse.Namespace, text: str) -> int:
    print(json.dumps({"done": options.verb}) if options.json else text)
    return 0


_VERBS = {
    "answer": _answer,
    "status": _status,
    "sent": _sent,
    "pause": _pause,
    "resume": _resume,
    "forget": _forget,
}


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds `agent` and its verbs to the command line."""
    agent = commands.add_parser("agent", help="a device from the command line, and what its owner may know")
    verbs = agent.add_subparsers(title="verbs", required=True, metavar="VERB", dest="verb")
    texts = {
        "answer": "answer the surveys that were joined, and send what waits",
        "status": "what was asked, what can have been learned, what is left",
        "sent": "the exact bytes that were sent",
        "pause": "answer and send nothing until resume",
        "resume": "end a pause",
        "forget": "erase values, answers and what waits; the budget is not renewed",
    }
    for verb, text in texts.items():
        parser = verbs.add_parser(verb, help=text)
        parser.add_argument("--ledger", type=Path, required=True, help="the device's ledger file")
        parser.add_argument("--json", action="store_true", help="print the result as JSON")
        parser.set_defaults(run=run)
        if verb == "forget":
            parser.add_argument("--yes", action="store_true", help="really")
        if verb == "answer":
            parser.add_argument("--collector", required=True, metavar="URL", help="where surveys are served")
            parser.add_argument("--budget", type=float, help="lifetime epsilon of a new ledger; fixed by it")
            parser.add_argument(
                "--set", action="append", default=[], metavar="ATTRIBUTE=VALUE", help="may be repeated"
            )
            parser.add_argument(
                "--join", action="append", default=[], metavar="SURVEY", help="say yes to it, for good"
            )
