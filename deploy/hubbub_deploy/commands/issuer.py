"""`hubbub issuer`: who gives devices one-time tokens without seeing what for."""

from __future__ import annotations

import argparse
import base64
import binascii
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from hubbub.errors import HubbubError
from hubbub.small_file import read_small, unreadable
from hubbub_deploy.commands.arguments import add_address, add_log, positive, whole
from hubbub_deploy.errors import DeployError
from hubbub_deploy.files import reading

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

    from hubbub_collector import Issuer, Permits

DEFAULT_PORT = 8790


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    issuer = commands.add_parser("issuer", help="who gives devices one-time tokens, without seeing what for")
    verbs = issuer.add_subparsers(dest="verb", required=True, metavar="VERB")
    keygen = verbs.add_parser("keygen", help="make a key; its public half is printed")
    keygen.add_argument("key", type=Path, metavar="FILE", help="file of the secret key (PEM), not there yet")
    keygen.set_defaults(run=_keygen)
    serve = verbs.add_parser("serve", help="give every device its tokens, once a period")
    serve.add_argument("key", type=Path, metavar="FILE", help="file of the secret key")
    serve.add_argument(
        "--credentials",
        type=Path,
        required=True,
        metavar="FILE",
        help="SHA-256 of each device's credential, 64 hexadecimal digits a line; read anew when replaced",
    )
    serve.add_argument("--data", type=Path, required=True, metavar="FILE", help="who had tokens (SQLite)")
    serve.add_argument(
        "--quantity", type=positive, default=4, help="tokens of a device in a period (default: %(default)s)"
    )
    serve.add_argument(
        "--period", type=positive, default=86_400, metavar="SECONDS", help="default: %(default)s, a day"
    )
    add_address(serve, DEFAULT_PORT)
    add_log(serve)
    serve.set_defaults(run=_serve)


def add_permits(parser: argparse.ArgumentParser) -> None:
    """Add the options of what senders must show to a command that takes uploads."""
    parser.add_argument(
        "--upload-password-file",
        type=Path,
        metavar="FILE",
        help="file of a password that every upload must carry; none: anyone may send",
    )
    parser.add_argument(
        "--issuer",
        action="append",
        default=[],
        metavar="NAME=KEY",
        help="an issuer whose tokens are taken, with its public key; then every report needs one",
    )
    parser.add_argument(
        "--issuer-quota",
        action="append",
        default=[],
        metavar="NAME=N",
        help="the most reports of an issuer that a round of a survey takes; none: any number",
    )


def permits(options: argparse.Namespace) -> Permits:
    """Return the `Permits` that the options of `add_permits` give.

    Raises:
        DeployError: If the file cannot be read, or an option breaks its rule. No message holds the password.
    """
    from hubbub_collector import CollectorError, Permits  # noqa: PLC0415 - others need no server library

    path: Path | None = options.upload_password_file
    with reading(f"upload password file {path}"):
        password = None if path is None else read_small(path).decode("utf-8").strip()
    try:
        issuers = tuple(map(_issuer, options.issuer))
        return Permits(password=password, issuers=_with_quotas(issuers, options.issuer_quota))
    except CollectorError as error:
        raise DeployError(str(error)) from None


def _issuer(text: str) -> Issuer:
    from hubbub.tokens import PublicKey  # noqa: PLC0415 - others need no tokens
    from hubbub_collector import Issuer  # noqa: PLC0415 - others need no server library

    name, found, key = text.partition("=")
    if not found:
        raise DeployError(f"--issuer must be NAME=KEY, got {text!r:.80}")
    try:
        data = base64.urlsafe_b64decode(key + "=" * (-len(key) % 4))
        return Issuer(name, PublicKey.from_spki(data))
    except (binascii.Error, UnicodeEncodeError):
        raise DeployError(f"--issuer {name}: the key must be in base64, got {key!r:.80}") from None
    except (HubbubError, ValueError) as error:
        raise DeployError(f"--issuer {name}: {error}") from None


def _with_quotas(issuers: tuple[Issuer, ...], given: list[str]) -> tuple[Issuer, ...]:
    """Return the issuers with their quotas, given as NAME=N."""
    quotas: dict[str, int] = {}
    for text in given:
        name, _, number = text.rpartition("=")
        if name not in {issuer.name for issuer in issuers}:
            raise DeployError(f"--issuer-quota must be NAME=N of an --issuer, got {text!r:.80}")
        try:
            quotas[name] = whole(number)
        except argparse.ArgumentTypeError as error:
            raise DeployError(f"--issuer-quota {name}: {error}") from None
    return tuple(replace(issuer, quota=quotas.get(issuer.name)) for issuer in issuers)


def _keygen(options: argparse.Namespace) -> int:
    """Make a key, and print what devices and collectors pin."""
    from cryptography.hazmat.primitives import serialization  # noqa: PLC0415 - slow to load
    from cryptography.hazmat.primitives.asymmetric import rsa  # noqa: PLC0415 - slow to load

    from hubbub.tokens import public_of  # noqa: PLC0415 - others need no tokens

    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    data = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    try:
        with open(options.key, "xb", opener=_private) as file:
            file.write(data)
    except OSError as error:
        raise DeployError(f"{options.key} must be a file that can be made, got {error.strerror}") from None
    print(base64.urlsafe_b64encode(public_of(key).spki).decode().rstrip("="))
    return 0


def _private(path: str, flags: int) -> int:
    import os  # noqa: PLC0415 - for this one call

    return os.open(path, flags, 0o600)


def _read_key(path: Path) -> RSAPrivateKey:
    from cryptography.hazmat.primitives import serialization  # noqa: PLC0415 - slow to load
    from cryptography.hazmat.primitives.asymmetric import rsa  # noqa: PLC0415 - slow to load

    try:
        key = serialization.load_pem_private_key(read_small(path), password=None)
    except OSError as error:
        raise DeployError(f"{path} cannot be read: {unreadable(error)}") from None
    except (ValueError, TypeError):
        raise DeployError(f"{path} must be a secret key in PEM without a password, got other bytes") from None
    if not isinstance(key, rsa.RSAPrivateKey):
        raise DeployError(f"{path} must be an RSA key, got another kind")
    return key


def trusted(clock: Callable[[], float]) -> Callable[[], float | None]:
    """Return a clock that says None where the other is in doubt."""
    from hubbub_aggregator import ClockDoubtError  # noqa: PLC0415 - slow to load

    def now_s() -> float | None:
        try:
            return clock()
        except ClockDoubtError:
            return None

    return now_s


def _serve(options: argparse.Namespace) -> int:
    """Run an issuer until SIGINT or SIGTERM."""
    from hubbub_aggregator.release import SteadyClock  # noqa: PLC0415 - slow to load
    from hubbub_collector import (  # noqa: PLC0415 - others need no server library
        CollectorError,
        Grants,
        IssuerSettings,
        boot_s,
        create_issuer_app,
        create_server,
    )
    from hubbub_deploy.http_server import base_url, listen, run, stopping_politely  # noqa: PLC0415

    try:
        settings = IssuerSettings(
            key=_read_key(options.key),
            credentials=options.credentials,
            quantity=options.quantity,
            period_s=options.period,
        )
        with closing(Grants(options.data)) as grants, listen(options.host, options.port) as listener:
            app = create_issuer_app(settings, grants, clock=trusted(SteadyClock(time.time, boot_s)))
            server = create_server(app, host=options.host, port=options.port)
            print(f"Hubbub issuer: {base_url(options.host, listener)}", flush=True)
            with stopping_politely(server):
                run(server, listener, name="issuer")
    except (CollectorError, HubbubError) as error:
        raise DeployError(str(error)) from None
    return 0
