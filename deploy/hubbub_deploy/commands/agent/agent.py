"""`hubbub agent`: a device from the command line, and what its owner may know and say.

`status` and `sent` show what was asked, the exact bytes that were sent, what anybody can at most have
learned from them, and what is left. No value is printed, and no answer before it was sent.
"""

from __future__ import annotations

import argparse
import json
import sys
import threading
from pathlib import Path
from typing import Any

from hubbub.survey import Survey, number_of_round
from hubbub_client import (
    Account,
    Agent,
    ClientError,
    LedgerLockedError,
    OwnerPage,
    TransportError,
    owner_page,
)
from hubbub_client.upload import Response
from hubbub_deploy.commands.agent.answer import add_answer_options, answer
from hubbub_deploy.commands.arguments import port
from hubbub_deploy.errors import DeployError


class _Offline:
    """A way to no collector: for commands that send nothing."""

    def get(self, path: str) -> Response:
        raise TransportError(f"{path} is not asked for here")

    def post(self, path: str, body: bytes) -> Response:
        raise TransportError(f"{len(body)} bytes for {path} are not sent here")

    def close(self) -> None:
        pass


def run(options: argparse.Namespace) -> int:
    """Run one `hubbub agent` command and return its exit code.

    Raises:
        DeployError: If the ledger or the collector refuses.
    """
    try:
        return _VERBS[options.verb](options)
    except LedgerLockedError as error:
        raise DeployError(f"{error}; while the app runs, ask it: Agent.account, Agent.serve_page") from None
    except ClientError as error:
        raise DeployError(str(error)) from None


def _open(options: argparse.Namespace) -> Agent:
    return Agent(options.ledger, "", budget=None, http=_Offline())


def _status(options: argparse.Namespace) -> int:
    with _open(options) as agent:
        account = agent.account()
    if options.json:
        print(json.dumps(facts(account), ensure_ascii=False))
        return 0
    print(owner_page.learned(account.loss, "From everything this device ever answered"))
    print(
        f"Budget {account.budget:g} for life: {account.loss:.3f} spent, "
        f"{account.reserved:.3f} reserved, {account.left:.3f} left."
    )
    if account.forgotten:
        print(f"{account.forgotten:.3f} of it was spent before you had it forgotten.")
    if account.paused:
        print("Paused: nothing is answered or sent until `hubbub agent resume`.")
    for asked in account.surveys:
        survey = asked.survey
        print(f"\n{survey.title} ({survey.id} version {survey.version}, {asked.state})")
        print(f"  asked: {owner_page.asked(survey)}")
        print(f"  how: {owner_page.mechanism(survey)}")
        print(f"  when: {owner_page.schedule(survey)}")
        print(f"  {owner_page.progress(asked)}")
    for refused in account.refusals:
        print(f"\nRefused: {refused.title} ({refused.survey_id} version {refused.version})")
        print(f"  {owner_page.refused(refused)}")
    if account.waiting:
        print(f"\n{account.waiting} wait to be sent; they count at their worst until they were.")
    return 0


def facts(account: Account) -> dict[str, Any]:
    """Return the account as JSON types, without the bytes that were sent, which `sent` prints."""
    return {
        "budget": account.budget,
        "loss": account.loss,
        "reserved": account.reserved,
        "left": account.left,
        "forgotten": account.forgotten,
        "paused": account.paused,
        "waiting": account.waiting,
        "learned": owner_page.learned(account.loss, "From everything this device ever answered"),
        "parts": [{"attributes": list(part.attributes), "loss": part.loss} for part in account.parts],
        "surveys": [
            {
                "id": asked.survey.id,
                "version": asked.survey.version,
                "digest": asked.survey.digest.hex(),
                "title": asked.survey.title,
                "asked": owner_page.asked(asked.survey),
                "how": owner_page.mechanism(asked.survey),
                "when": owner_page.schedule(asked.survey),
                "epsilon": asked.survey.channel.epsilon,
                "state": asked.state,
                "rounds": asked.survey.rounds,
                "answered": asked.answered,
                "sent": len(asked.sent),
                "bytes": sum(len(report.data) for report in asked.sent),
                "loss": asked.loss,
                "learned": owner_page.progress(asked),
            }
            for asked in account.surveys
        ],
        "refused": [
            {
                "id": refused.survey_id,
                "version": refused.version,
                "title": refused.title,
                "reason": refused.reason,
                "epsilon": refused.epsilon,
                "headroom": refused.headroom,
                "at": owner_page.moment(refused.at_s),
            }
            for refused in account.refusals
        ],
    }


def _sent(options: argparse.Namespace) -> int:
    with _open(options) as agent:
        account = agent.account()
    rows: list[dict[str, Any]] = [
        {
            "survey": report.survey_id,
            "round": number_of_round(report.round),
            "report": report.id.hex(),
            "bytes": report.data.hex(),
            "digest": report.digest.hex(),
            "says": owner_page.symbol(asked.survey, report.symbol),
            "outcome": report.outcome,
            "loss": report.loss,
        }
        for asked in account.surveys
        for report in asked.sent
    ]
    if options.json:
        print(json.dumps({"sent": rows, "waiting": account.waiting}, ensure_ascii=False))
        return 0
    for row in rows:
        print(f"{row['survey']} round {row['round']}: {owner_page.fate(row['outcome'])}")
        print(f"  bytes   {row['bytes']}")
        print(f"  survey  {row['digest']}")
        print(f"  report  {row['report']}")
        print(f"  says    {row['says']}")
    if not rows:
        print("Nothing was sent since the last forget.")
    if account.waiting:
        print(f"{account.waiting} more wait to be sent; they are shown when they were.")
    return 0


def _page(options: argparse.Namespace) -> int:
    """Open the ledger for each request alone, so that the app can have it between two of them."""
    _open(options).close()  # a ledger that cannot be opened is said here, not in a browser
    try:
        page = OwnerPage(lambda: _open(options), port=options.port)
    except OSError as error:
        raise DeployError(f"127.0.0.1:{options.port} cannot be listened on: {error.strerror}") from None
    try:
        print(json.dumps({"url": page.url}) if options.json else page.url, flush=True)
        print("hubbub: for you alone; Ctrl-C ends it", file=sys.stderr)
        threading.Event().wait()
    finally:
        page.close()
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


def _join(options: argparse.Namespace) -> int:
    with _open(options) as agent:
        survey = _taken(agent, options.survey)
        agent.opt_in(survey)
        enrolment = agent.enrol(survey)
    if enrolment.reason:
        raise DeployError(f"{options.survey} cannot be joined again: {enrolment.reason}")
    return _said(options, "Joined. What is still reserved serves, and no round is answered twice.")


def _leave(options: argparse.Namespace) -> int:
    with _open(options) as agent:
        agent.opt_out(_taken(agent, options.survey))
    return _said(options, "Left. What was answered stays spent, and what is reserved stays reserved.")


def _taken(agent: Agent, name: str) -> Survey:
    """Return the survey of this id, the one taken part in last, or of this digest."""
    known = [survey for survey in agent.surveys() if name in (survey.id, survey.digest.hex())]
    if not known:
        raise DeployError(f"a survey must be one that this device took part in, got {name!r}")
    return known[-1]


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
    "answer": answer,
    "status": _status,
    "sent": _sent,
    "page": _page,
    "pause": _pause,
    "resume": _resume,
    "join": _join,
    "leave": _leave,
    "forget": _forget,
}


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `agent` and its verbs to the command line."""
    agent = commands.add_parser("agent", help="a device from the command line, and what its owner may know")
    verbs = agent.add_subparsers(title="verbs", required=True, metavar="VERB", dest="verb")
    texts = {
        "answer": "answer the surveys that were joined, and send what waits",
        "status": "what was asked, what can have been learned, what is left",
        "sent": "the exact bytes that were sent",
        "page": "all of that as a page for this machine alone, with buttons; until Ctrl-C",
        "pause": "answer and send nothing until resume",
        "resume": "end a pause",
        "join": "take part again in a survey that was left; `answer --join` joins a new one",
        "leave": "answer a survey no more, and withdraw what waits for it",
        "forget": "erase values, answers and what waits; the budget is not renewed",
    }
    for verb, text in texts.items():
        parser = verbs.add_parser(verb, help=text)
        parser.add_argument("--ledger", type=Path, required=True, help="the device's ledger file")
        parser.add_argument("--json", action="store_true", help="print the result as JSON")
        parser.set_defaults(run=run)
        if verb in ("join", "leave"):
            parser.add_argument(
                "survey", metavar="SURVEY", help="its id, for the last one that was joined, or its digest"
            )
        if verb == "forget":
            parser.add_argument("--yes", action="store_true", help="really")
        if verb == "page":
            parser.add_argument("--port", type=port, default=0, help="of 127.0.0.1 (default: any free one)")
        if verb == "answer":
            add_answer_options(parser)
