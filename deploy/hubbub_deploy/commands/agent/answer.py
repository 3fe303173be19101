"""`hubbub agent answer`: answer the surveys of a collector from a command line, and send what waits."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from hubbub.small_file import read_small
from hubbub.survey import (
    ABSENT_VALUE,
    Attribute,
    IntegerDomain,
    NumberDomain,
    SetDomain,
    number_of_round,
    survey_state,
)
from hubbub_client import Agent, TokenIssuer, Tokens
from hubbub_deploy.commands.arguments import add_dictionary, add_plain_http, positive, take_dictionaries
from hubbub_deploy.commands.log import add_policy, policy_of
from hubbub_deploy.errors import DeployError
from hubbub_deploy.files import reading
from hubbub_lab.texts import number_of, whole_of


def add_answer_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of `hubbub agent answer`."""
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
    parser.add_argument(
        "--upload-password-file", type=Path, metavar="FILE", help="file of what the collector asks of uploads"
    )
    parser.add_argument("--issuer-url", metavar="URL", help="where tokens are issued, if any are asked for")
    parser.add_argument("--issuer", metavar="NAME=KEY", help="the issuer's name and public key")
    parser.add_argument("--credential-file", type=Path, metavar="FILE", help="what the issuer knows us by")
    parser.add_argument(
        "--quantity", type=positive, default=4, help="tokens in a period (default: %(default)s)"
    )
    add_dictionary(parser)
    add_plain_http(parser)
    add_policy(parser)


def answer(options: argparse.Namespace) -> int:
    """Answer, send, and say what became of it."""
    if options.set:
        print(
            "hubbub: --set shows the value to every process of this machine; --set-from FILE, "
            "or - for stdin, does not",
            file=sys.stderr,
        )
    values = _values([*_lines(options.set_from), *options.set])
    keys = options.survey_key or None
    with Agent(
        options.ledger,
        options.collector,
        budget=options.budget,
        survey_key=keys,
        log=policy_of(options),
        upload_password=_secret(options.upload_password_file, "upload password"),
        tokens=_tokens(options),
        plain_http=options.plain_http,
    ) as agent:
        listed = agent.fetch_surveys()
        unknown = set(options.join) - {survey.id for survey in listed}
        if unknown:
            raise DeployError(f"--join must name a survey that the collector serves, got {min(unknown)!r}")
        asked = [attribute for survey in listed for attribute in survey.attributes]
        take_dictionaries(options.dictionary, asked, values)
        by_attribute = {attribute.id: attribute for attribute in asked}
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
        agent.fetch_tokens()
        outcome = agent.upload()
        paused = agent.status().paused
    result: dict[str, Any] = {
        "paused": paused,
        "surveys": [
            {"id": e.survey_id, "version": e.version, "status": e.status, "reason": e.reason}
            for e in enrolments
        ],
        "answered": [
            {"survey": a.survey_id, "round": number_of_round(a.round), "report": a.id.hex()} for a in made
        ],
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
    for one in made:
        print(f"answered {one.survey_id}, round {number_of_round(one.round)}")
    if paused:
        print("paused: nothing is answered or sent until `hubbub agent resume`")
    print(f"{len(outcome.settled)} sent, {outcome.waiting} waiting" + _because(outcome.failure))
    return 0


def _secret(path: Path | None, what: str) -> str | None:
    """Return what a file holds, None for no file; no message holds it."""
    if path is None:
        return None
    with reading(f"{what} file {path}"):
        return read_small(path).decode("ascii").strip()


def _tokens(options: argparse.Namespace) -> Tokens | None:
    """Return the tokens beside the ledger, None where no issuer is named."""
    if options.issuer_url is None:
        for option, value in (("--issuer", options.issuer), ("--credential-file", options.credential_file)):
            if value is not None:
                raise DeployError(f"{option} must come with --issuer-url, got none")
        return None
    name, found, key = (options.issuer or "").partition("=")
    credential = _secret(options.credential_file, "credential")
    if not found or credential is None:
        raise DeployError("--issuer-url must come with --issuer NAME=KEY and --credential-file")
    issuer = TokenIssuer(
        options.issuer_url,
        name,
        key,
        credential,
        quantity=options.quantity,
        plain_http=options.plain_http,
    )
    return Tokens(Path(f"{options.ledger}.tokens"), issuer)


def _because(failure: str | None) -> str:
    return f" ({failure})" if failure else ""


def _lines(path: str | None) -> list[str]:
    """Return the lines of a file of values, or of stdin for "-", without the empty ones; none for None."""
    if path is None:
        return []
    try:
        data = read_small(Path(path)).decode("utf-8")
    except OSError as error:
        raise DeployError(f"--set-from {path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:  # it would quote what it could not read
        raise DeployError(f"--set-from {path}: must be UTF-8 text") from None
    return [line for line in data.splitlines() if line.strip()]


def _values(texts: Iterable[str]) -> dict[str, str]:
    values: dict[str, str] = {}
    for text in texts:
        attribute, found, value = text.partition("=")
        if not found:  # never the text: it may be a value
            raise DeployError("--set must be ATTRIBUTE=VALUE, and so must a line of --set-from, got no =")
        if values.setdefault(attribute, value) != value:
            raise DeployError(f"--set must name an attribute once, got {attribute!r} with two values")
    return values


def _say_outside(attribute: Attribute, value: object, text: str) -> None:
    """Say on stderr that a value is answered as missing, never which: it may be a person's."""
    domain = attribute.domain
    if attribute.tells_absent and value == ABSENT_VALUE:
        inside = True
    elif isinstance(domain, NumberDomain):
        inside = isinstance(value, float) and domain.low <= value <= domain.high
    elif isinstance(domain, SetDomain):
        inside = domain.members(value) is not None
    else:
        inside = attribute.index_of(value) < attribute.size
    if text and not inside:
        said = f"what was set for {attribute.id} is no value of its domain: it is answered as missing"
        print(f"hubbub: {said}", file=sys.stderr)


def value_of(attribute: Attribute, text: str) -> object:
    """Return what was typed as the attribute's type; missing if it cannot be read."""
    if attribute.tells_absent and text.strip() == ABSENT_VALUE:
        return ABSENT_VALUE
    if isinstance(attribute.domain, NumberDomain):
        return number_of(text.strip())
    if isinstance(attribute.domain, SetDomain):
        return [item.strip() for item in text.split(",")]
    return whole_of(text.strip()) if isinstance(attribute.domain, IntegerDomain) else text
