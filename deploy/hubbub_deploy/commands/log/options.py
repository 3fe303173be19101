"""The options and verbs about a log that several commands share."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from hubbub_deploy.commands.arguments import whole
from hubbub_deploy.errors import DeployError
from hubbub_deploy.files import create_signing_key, load_signing_key

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    from hubbub.transparency import LogPolicy, NoteKey
    from hubbub_deploy.transparency import LogSettings

Whose = Literal["log", "witness"]


def add_keygen(verbs: argparse._SubParsersAction[argparse.ArgumentParser], whose: Whose) -> None:
    """Add the verb that makes the key of a log or of a witness."""
    keygen = verbs.add_parser("keygen", help="make the key; its public half is printed")
    keygen.add_argument("--out", type=Path, required=True, help="private key file (PEM), never overwritten")
    keygen.add_argument("--name", required=True, help="a name that nobody else has: example.org/hubbub")
    keygen.set_defaults(run=_keygen, whose=whose)


def named_key(name: str, whose: Whose, private: Ed25519PrivateKey) -> NoteKey:
    """Return the public half of a key, with its name."""
    from hubbub.transparency import LOG_KEY, WITNESS_KEY, NoteKey  # noqa: PLC0415 - others need no log

    _check_name(name)
    kind = LOG_KEY if whose == "log" else WITNESS_KEY
    return NoteKey(name, kind, private.public_key().public_bytes_raw())


def _check_name(name: str) -> None:
    from hubbub.transparency import is_name  # noqa: PLC0415 - others need no log

    if not is_name(name):
        raise DeployError(f"a name must have 1 to 255 bytes, without spaces and +, got {name!r}")


def _keygen(options: argparse.Namespace) -> int:
    _check_name(options.name)
    print(named_key(options.name, options.whose, create_signing_key(options.out)).text)
    return 0


def add_keeping(parser: argparse.ArgumentParser) -> None:
    """Add the options of a log to a command that publishes releases."""
    group = parser.add_argument_group("log", "of what is published, for strangers to check: docs/log.md")
    group.add_argument("--log-key", type=Path, metavar="FILE", help="its secret key; none: there is no log")
    group.add_argument("--log-name", metavar="NAME", help="the name that the key was made with")
    group.add_argument(
        "--witness", action="append", default=[], metavar="KEY=URL", help="a witness; may be repeated"
    )
    group.add_argument(
        "--quorum", type=whole, metavar="N", help="witnesses that must see what is published (default: most)"
    )


def keeping(options: argparse.Namespace) -> LogSettings | None:
    """Return what the options of `add_keeping` give, None without a log.

    Raises:
        DeployError: If a key cannot be read, or an option lacks another.
        NotLoggedError: If a witness's key is none.
    """
    from hubbub.transparency import LogPolicy, NoteKey  # noqa: PLC0415 - others need no log
    from hubbub_deploy.transparency import LogSettings  # noqa: PLC0415 - as above

    if options.log_key is None:
        _refuse_others(options)
        return None
    if options.log_name is None:
        raise DeployError("--log-key must come with --log-name, got none")
    private = load_signing_key(options.log_key)
    key, witnesses = named_key(options.log_name, "log", private), {}
    for text in options.witness:
        named, sign, url = text.partition("=")
        if not sign:
            raise DeployError(f"--witness must be KEY=URL, got {text!r}")
        witnesses[NoteKey.parse(named)] = url
    quorum = _quorum(options, len(witnesses))
    LogPolicy(key, tuple(witnesses), quorum)  # raises where they do not fit
    return LogSettings(key, private, witnesses, quorum)


def add_policy(parser: argparse.ArgumentParser) -> None:
    """Add the options that say which log is believed, and whose witness."""
    group = parser.add_argument_group("log", "in which things must be: docs/log.md")
    group.add_argument("--log-key", metavar="KEY", help="its key, as `hubbub log keygen` printed it")
    group.add_argument(
        "--witness", action="append", default=[], metavar="KEY", help="key of a witness; may be repeated"
    )
    group.add_argument(
        "--quorum", type=whole, metavar="N", help="witnesses that must have seen it (default: most)"
    )


def policy_of(options: argparse.Namespace) -> LogPolicy | None:
    """Return the policy that the options of `add_policy` give, None without a log's key.

    Raises:
        DeployError: If there is no log's key among others, if keys are none, or fewer than the quorum.
    """
    from hubbub.transparency import LogPolicy, NoteKey, NotLoggedError  # noqa: PLC0415 - others need no log

    if options.log_key is None:
        _refuse_others(options)
        return None
    try:
        witnesses = tuple(map(NoteKey.parse, options.witness))
        return LogPolicy(NoteKey.parse(options.log_key), witnesses, _quorum(options, len(witnesses)))
    except NotLoggedError as error:  # of what was typed, and of no log
        raise DeployError(str(error)) from None


def _refuse_others(options: argparse.Namespace) -> None:
    if getattr(options, "log_name", None) or options.witness or options.quorum is not None:
        raise DeployError("--witness, --quorum and --log-name are about a log, and need --log-key")


def _quorum(options: argparse.Namespace, witnesses: int) -> int:
    """Return how many witnesses are asked for: more than half, or none of none, where nothing is said."""
    given: int | None = options.quorum
    return given if given is not None else witnesses // 2 + 1 if witnesses else 0
