"""`hubbub agent`: a device from the command line, and what its owner may know and say.

`status` and `sent` show what was asked, the exact bytes that were sent, what anybody can at most have
learned from them, and what is left. No value is printed, and no answer before it was sent.
"""

from __future__ import annotations

import argparse
import json
import sys
import threading
import time
from pathlib import Path
from typing import Any

from hubbub.survey import Attribute, IntegerDomain, NumberDomain, Survey, survey_state
from hubbub_client import Account, Agent, ClientError, LedgerLocked, OwnerPage, TransportError, owner_page
from hubbub_client.upload import Response
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
    except LedgerLocked as error:
        raise DeployError(f"{error}; while the app runs, ask it: Agent.account, Agent.serve_page") from None
    except ClientError as error:
        raise DeployError(str(error)) from None


def _open(options: argparse.Namespace) -> Agent:
    return Agent(options.ledger, "", budget=None, http=_Offline())


def _answer(options: argparse.Namespace) -> int:
    if options.set:
        print(
            "hubbub: --set shows the value to every process of this machine; --set-from FILE, "
            "or - for stdin, does not",
            file=sys.stderr,
        )
    values = dict(_pair(text) for text in [*_lines(options.set_from), *options.set])
    keys = options.survey_key or None
    with Agent(options.ledger, options.collector, budget=options.budget, survey_key=keys) as agent:
        listed = agent.fetch_surveys()
        unknown = set(options.join) - {survey.id for survey in listed}
        if unknown:
            raise DeployError(f"--join must name a survey that the collector serves, got {min(unknown)!r}")
        by_attribute = {attribute.id: attribute for survey in listed for attribute in survey.attributes}
        for attribute_id, text in values.items():
            if attribute_id not in by_attribute:
                raise DeployError(
                    f"--set must name an attribute that a survey asks for, got {attribute_id!r}"
                )
            attribute = by_attribute[attribute_id]
            agent.register(attribute)
            value = value_of(attribute, text)
            _say_outside(attribute, value, text)
            agent.set(attribute_id, value)
        for survey in listed:
            if survey.id in options.join:
                agent.opt_in(survey)
                unset = [each.id for each in survey.attributes if each.id not in values]
                for attribute_id in unset:
                    print(
                        f"hubbub: {survey.id} is joined without --set {attribute_id}=...: "
                        "unless a value was pinned before, it is answered as missing",
                        file=sys.stderr,
                    )
        enrolments = [agent.enrol(survey) for survey in listed]
        # An evolving value is kept only for a round that waits for it: say it again, now that some may.
        for attribute_id, text in values.items():
            agent.set(attribute_id, value_of(by_attribute[attribute_id], text))
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
    now_s, by_digest = time.time(), {survey.digest: survey for survey in listed}
    for enrolment in enrolments:
        said = f"refused: {enrolment.reason}" if enrolment.reason else enrolment.status.replace("_", " ")
        state = "" if enrolment.reason else f"; {survey_state(by_digest[enrolment.digest], now_s).words}"
        print(f"{enrolment.survey_id} version {enrolment.version}: {said}{state}")
    for answer in made:
        print(f"answered {answer.survey_id}, round {answer.round + 1}")
    if paused:
        print("paused: nothing is answered or sent until `hubbub agent resume`")
    print(f"{len(outcome.settled)} sent, {outcome.waiting} waiting" + _because(outcome.failure))
    return 0


def _because(failure: str | None) -> str:
    return f" ({failure})" if failure else ""


def _lines(path: str | None) -> list[str]:
    """Return the lines of a file of values, or of stdin for "-", without the empty ones; none for None."""
    if path is None:
        return []
    try:
        data = sys.stdin.read() if path == "-" else Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise DeployError(f"--set-from {path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:  # it would quote what it could not read
        raise DeployError(f"--set-from {path}: must be UTF-8 text") from None
    return [line for line in data.splitlines() if line.strip()]


def _pair(text: str) -> tuple[str, str]:
    attribute, found, value = text.partition("=")
    if not found:  # never the text: it may be a value
        raise DeployError("--set must be ATTRIBUTE=VALUE, and so must a line of --set-from, got no =")
    return attribute, value


def _say_outside(attribute: Attribute, value: object, text: str) -> None:
    """Say on stderr that a value is answered as missing, never which: it may be a person's."""
    domain = attribute.domain
    if isinstance(domain, NumberDomain):
        inside = isinstance(value, float) and domain.low <= value <= domain.high
    else:
        inside = attribute.index_of(value) < attribute.size
    if text and not inside:
        said = f"what was set for {attribute.id} is no value of its domain: it is answered as missing"
        print(f"hubbub: {said}", file=sys.stderr)


def value_of(attribute: Attribute, text: str) -> object:
    """Return what was typed as the attribute's type; missing if it cannot be read."""
    try:
        if isinstance(attribute.domain, NumberDomain):
            return float(text)
        return int(text) if isinstance(attribute.domain, IntegerDomain) else text
    except ValueError:
        return None


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
    if said := owner_page.overspent(account):
        print(said)
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
            "round": report.round,
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
        print(f"{row['survey']} round {row['round'] + 1}: {owner_page.fate(row['outcome'])}")
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
    "answer": _answer,
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
            parser.add_argument("--collector", required=True, metavar="URL", help="where surveys are served")
            parser.add_argument(
                "--survey-key",
                action="append",
                metavar="KEY",
                help="take only lists that this public key signed; may be repeated",
            )
            parser.add_argument("--budget", type=float, help="lifetime epsilon of a new ledger; fixed by it")
            parser.add_argument(
                "--set",
                action="append",
                default=[],
                metavar="ATTRIBUTE=VALUE",
                help="may be repeated; every process of this machine can read it: better --set-from",
            )
            parser.add_argument(
                "--set-from", metavar="FILE", help="read lines of ATTRIBUTE=VALUE from a file, or stdin for -"
            )
            parser.add_argument(
                "--join", action="append", default=[], metavar="SURVEY", help="say yes to it, for good"
            )
