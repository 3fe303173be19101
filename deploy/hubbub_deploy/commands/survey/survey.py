"""`hubbub survey keygen` and `sign`: say with authority which surveys may be asked."""

from __future__ import annotations

import argparse
import json
import math
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hubbub.errors import HubbubError, ListError
from hubbub.small_file import read_small
from hubbub_deploy.commands.survey import check, consent, new, rehearse
from hubbub_deploy.errors import DeployError
from hubbub_deploy.files import create, create_signing_key, load_signing_key, load_survey, replace_file

if TYPE_CHECKING:
    from hubbub.survey import SurveyList

DAY_S = 86_400
DEFAULT_DAYS = 30.0
"""Days that a list lives: for so long newer ones can be withheld from a device, and so often one is
signed."""


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command and all its verbs."""
    survey = commands.add_parser("survey", help="begin, check, compile and sign surveys")
    verbs = survey.add_subparsers(title="verbs", required=True, metavar="VERB")
    check.add_to(verbs)
    rehearse.add_to(verbs)
    consent.add_to(verbs)
    new.add_to(verbs)
    dictionary = verbs.add_parser(
        "dictionary", help="write the dictionary of a text file's lines, for devices; print a survey's keys"
    )
    dictionary.add_argument("texts", type=Path, help="a text a line, UTF-8")
    dictionary.add_argument(
        "--out", type=Path, required=True, help="the dictionary: what devices download; never overwritten"
    )
    dictionary.add_argument("--order", type=Path, help="the texts in its order: line 17 is #17 of a release")
    dictionary.set_defaults(run=_dictionary)
    keygen = verbs.add_parser(
        "keygen", help="make the key that signs lists of surveys; print its public half"
    )
    keygen.add_argument("--out", type=Path, required=True, help="private key file (PEM), never overwritten")
    keygen.set_defaults(run=_keygen)

    sign = verbs.add_parser(
        "sign", help="write a signed list of surveys, for a node or collectors to serve with --list"
    )
    sign.add_argument(
        "surveys", nargs="*", type=Path, metavar="SURVEY", help="every survey that may be asked; - for stdin"
    )
    sign.add_argument("--key", type=Path, required=True, help="private key file, from keygen")
    sign.add_argument(
        "--out",
        type=Path,
        required=True,
        help="the list; one that is there is replaced by the next: higher sequence, same cancellations",
    )
    sign.add_argument(
        "--cancel",
        action="append",
        default=[],
        metavar="SURVEY|DIGEST",
        help="a survey to cancel for good, by file or by digest; may be repeated",
    )
    sign.add_argument(
        "--days",
        type=float,
        default=DEFAULT_DAYS,
        help="until it expires, at most 366 (default: %(default)g)",
    )
    sign.add_argument(
        "--former", metavar="KEY", help="public key that signed the list which is there, where it was another"
    )
    sign.add_argument("--json", action="store_true", help="print what the list says as JSON")
    sign.set_defaults(run=_sign)


def _dictionary(options: argparse.Namespace) -> int:
    from hubbub.survey import DictionaryDomain, dictionary_of  # noqa: PLC0415

    try:
        lines = options.texts.read_text(encoding="utf-8-sig").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise DeployError(f"{options.texts} must be a file of UTF-8 text ({error})") from None
    data, order = dictionary_of(line.removesuffix("\r") for line in lines if line.strip())
    domain = DictionaryDomain.of(data)
    create(options.out, data, mode=0o666)
    if options.order is not None:
        create(options.order, "".join(f"{text}\n" for text in order).encode(), mode=0o666)
    print(f'type = "dictionary"\ntexts = {domain.size}\ndigest = "{domain.digest.hex()}"')
    return 0


def _keygen(options: argparse.Namespace) -> int:
    from hubbub.survey import public_text  # noqa: PLC0415

    print(public_text(create_signing_key(options.out)))
    return 0


def _sign(options: argparse.Namespace) -> int:
    from hubbub.survey import (  # noqa: PLC0415
        MAX_LIFE_S,
        MAX_LIST_BYTES,
        SurveyList,
        digest_of,
        in_list_order,
        public_key,
        public_text,
    )

    if not 0 < options.days * DAY_S <= MAX_LIFE_S:
        raise DeployError(
            f"--days must be above 0 and at most {MAX_LIFE_S // DAY_S}, got {options.days:g}: who withholds "
            "newer lists can do it until this one expires"
        )
    key = load_signing_key(options.key)
    keys = [public_key(public_text(key)), *([public_key(options.former)] if options.former else [])]
    before = _before(options.out, keys)
    surveys = {survey.digest: survey for survey in in_list_order(map(load_survey, options.surveys))}
    named: dict[tuple[str, int], bytes] = {}
    for digest, survey in surveys.items():
        if named.setdefault((survey.id, survey.version), digest) != digest:
            raise DeployError(
                f"surveys must differ in id or version, got {survey.id} version {survey.version} twice"
            )
    cancelled = dict.fromkeys([*(before.cancelled if before else ()), *map(_digest, options.cancel)])
    issued_s = int(time.time())
    listed = SurveyList(
        before.sequence + 1 if before else 1,
        issued_s,
        issued_s + math.ceil(options.days * DAY_S),
        tuple(survey.canonical for survey in surveys.values()),
        tuple(cancelled),
    )
    signed = listed.signed(key)
    if len(signed) > MAX_LIST_BYTES:
        raise DeployError(
            f"{options.out} must have at most {MAX_LIST_BYTES:,} bytes, or no device takes it, "
            f"got {len(signed):,}"
        )
    replace_file(options.out, signed)
    facts = {
        "sequence": listed.sequence,
        "issued_s": listed.issued_s,
        "expires_s": listed.expires_s,
        "key": public_text(key),
        "surveys": [f"{survey.id} version {survey.version}" for survey in surveys.values()],
        "cancelled": [digest.hex() for digest in cancelled],
        "dropped": [
            digest.hex()
            for digest in map(digest_of, before.surveys if before else ())
            if digest not in surveys and digest not in cancelled
        ],
    }
    if options.json:
        print(json.dumps(facts))
    else:
        _print(facts, options.days)
    return 0


def _print(facts: dict[str, Any], days: float) -> None:
    """Print what a list says for people: moments in UTC, and nothing about what there is none of."""
    from hubbub.survey import duration_words  # noqa: PLC0415 - see above

    for name, value in facts.items():
        if name == "issued_s":
            print(f"issued     {_moment(value)}")
        elif name == "expires_s":
            print(f"expires    {_moment(value)}, in {duration_words(days * DAY_S)}: sign again before")
        elif value or name == "surveys":
            print(f"{name:10} {', '.join(value) or 'none' if isinstance(value, list) else value}")


def _moment(epoch_s: int) -> str:
    return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(epoch_s))


def _before(path: Path, keys: list[bytes]) -> SurveyList | None:
    """Return the list that stands there, None without one; never one that somebody else may have made."""
    from hubbub.survey import MAX_LIST_BYTES, open_signed  # noqa: PLC0415

    try:
        return open_signed(read_small(path, limit=MAX_LIST_BYTES), keys).listed
    except FileNotFoundError:
        return None
    except OSError as error:
        raise DeployError(f"{path}: cannot be read: {error.strerror}") from None
    except ListError as error:
        raise DeployError(
            f"{path}: the list that is there is not this key's ({error}); if another key's, name it: --former"
        ) from None


def _digest(named: str) -> bytes:
    if len(named) == 32 and not set(named) - set("0123456789abcdef"):
        return bytes.fromhex(named)
    try:
        return load_survey(Path(named)).digest
    except HubbubError as error:
        raise DeployError(f"--cancel must be a survey file or a digest of 32 hex digits: {error}") from None
