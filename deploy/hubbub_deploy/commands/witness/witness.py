"""`hubbub witness`: sees that logs only grow, for whoever does not trust their operators."""

from __future__ import annotations

import argparse
import contextlib
from pathlib import Path

from hubbub_deploy.commands.arguments import add_address, add_log
from hubbub_deploy.commands.log import add_keygen, named_key
from hubbub_deploy.errors import DeployError
from hubbub_deploy.files import load_signing_key

WITNESS_PORT = 8791


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command and its verbs."""
    witness = commands.add_parser(
        "witness", help="sign that logs only get longer, by a number and a hash of each"
    )
    verbs = witness.add_subparsers(title="verbs", required=True, metavar="VERB")
    add_keygen(verbs, "witness")
    serve = verbs.add_parser("serve", help="sign what only got longer, for the logs that ask")
    serve.add_argument("key", type=Path, metavar="FILE", help="file of the secret key")
    serve.add_argument("--name", required=True, help="the name that the key was made with")
    serve.add_argument("--data", type=Path, required=True, metavar="FILE", help="what was seen (SQLite)")
    serve.add_argument(
        "--of", action="append", required=True, metavar="KEY", help="key of a log; may be repeated"
    )
    add_address(serve, WITNESS_PORT)
    add_log(serve)
    serve.set_defaults(run=_serve)


def _serve(options: argparse.Namespace) -> int:
    from hubbub.transparency import LOG_KEY, NoteKey  # noqa: PLC0415 - others need no log
    from hubbub_deploy.http_server import base_url, listen, run, stopping_politely  # noqa: PLC0415
    from hubbub_deploy.transparency import LogWitness, witness_server  # noqa: PLC0415

    private = load_signing_key(options.key)
    key = named_key(options.name, "witness", private)
    logs = tuple(map(NoteKey.parse, options.of))
    if any(log.kind != LOG_KEY for log in logs):
        raise DeployError("--of must be keys of logs, got a witness's")
    with (
        contextlib.closing(LogWitness(options.data, key, private, logs)) as witness,
        listen(options.host, options.port) as listener,
    ):
        server = witness_server(witness, host=options.host, port=listener.getsockname()[1])
        print(f"Hubbub witness: {base_url(options.host, listener)}", flush=True)
        with stopping_politely(server):
            run(server, listener, name="witness")
    return 0
