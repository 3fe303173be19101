"""The `hubbub` command: what an analyst, an operator and a researcher type.

Results go to stdout, talk to stderr. Exit 0: done; 1: it failed, in one line; 2: misuse.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from hubbub.errors import HubbubError
from hubbub_deploy.commands import (
    add_partitions,
    agent,
    aggregator,
    audit,
    collector,
    config,
    dashboard,
    dead_letters,
    delete,
    demo,
    evaluate,
    export,
    issuer,
    node,
    replay,
    simulate,
    skip_lost,
    survey,
    topic,
)
from hubbub_deploy.errors import DeployError
from hubbub_deploy.extras import missing, version_line
from hubbub_deploy.logs import as_json_lines

# In the order of help: to try it, to write surveys, a device, a cluster.
COMMANDS = (
    demo,
    node,
    simulate,
    export,
    delete,
    replay,
    evaluate,
    audit,
    survey,
    agent,
    topic,
    add_partitions,
    collector,
    issuer,
    aggregator,
    dashboard,
    dead_letters,
    skip_lost,
    config,
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    options = _parser().parse_args(arguments)
    if getattr(options, "log", "text") == "json":
        as_json_lines()
    try:
        code = int(options.run(options))
        sys.stdout.flush()
        return code
    except (HubbubError, DeployError) as error:
        print(f"hubbub: {error}", file=sys.stderr)
        return 1
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("hubbub"):
            raise
        print(f"hubbub: {missing(error.name)}", file=sys.stderr)
        return 1
    except BrokenPipeError:
        # The reader has seen enough (`| head`); Python would complain once more when it flushes stdout.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="hubbub", description="Streaming data collection under local differential privacy."
    )
    parser.add_argument("--version", action="version", version=version_line())
    parser.set_defaults(run=lambda _: _help(parser))
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    for command in COMMANDS:
        command.add_to(commands)
    return parser


def _help(parser: argparse.ArgumentParser) -> int:
    parser.print_help()
    return 0


if __name__ == "__main__":
    sys.exit(main())
