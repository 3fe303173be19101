"""The `hubbub` command: what an analyst, an operator and a researcher type.

Results go to stdout, talk to stderr. Exit 0: done; 1: it failed, in one line; 2: misuse.

Structured logs are one JSON object per line on stderr.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import logging
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Final, TextIO, TypeAlias

from hubbub.errors import HubbubError
from hubbub.version import version_line
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
    log,
    monitor,
    node,
    programme,
    replay,
    simulate,
    skip_lost,
    survey,
    topic,
    verify,
    witness,
)
from hubbub_deploy.errors import DeployError
from hubbub_deploy.extras import missing
from hubbub_lab.texts import plain

LEAST_LEVEL: Final = logging.WARNING
"""The least level that is logged, the same as in text."""


def as_json_lines(
    stream: TextIO | None = None, *, clock: Callable[[], float] = time.time
) -> Callable[[], None]:
    """Write whatever goes to stderr or to a log as JSON lines from now on, and return what undoes it.

    Each line has time (UTC), level, logger and message, and an error's traceback where there is one. What is
    written to stderr without a log, such as a traceback at the end, becomes a line of level ERROR and logger
    stderr for each of its lines.

    Args:
        stream: Where lines go; stderr as it is now.
        clock: Seconds since 1970, for what comes without a time of its own.
    """
    target, before = stream or sys.stderr, sys.stderr
    handler = logging.StreamHandler(target)
    handler.setFormatter(_JsonFormatter())
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    root.handlers[:] = [handler]
    root.setLevel(LEAST_LEVEL)
    sys.stderr = _LinesAsJson(target, clock)

    def undo() -> None:
        sys.stderr.flush()
        sys.stderr = before
        root.handlers[:] = handlers
        root.setLevel(level)

    return undo


def _line(at_s: float, level: str, logger: str, message: str, **more: str) -> str:
    moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(at_s)) + f".{int(at_s * 1000) % 1000:03d}Z"
    found = {"time": moment, "level": level, "logger": logger, "message": message, **more}
    return json.dumps(found, ensure_ascii=False)


class _JsonFormatter(logging.Formatter):
    """A formatter that gives a record as one JSON object."""

    def format(self, record: logging.LogRecord) -> str:
        more = {"error": self.formatException(record.exc_info)} if record.exc_info else {}
        return _line(record.created, record.levelname, record.name, record.getMessage(), **more)


class _LinesAsJson(io.TextIOBase):
    """A text stream that hands each whole line on as a JSON object."""

    def __init__(self, target: TextIO, clock: Callable[[], float]) -> None:
        self._target, self._clock, self._begun = target, clock, ""

    def write(self, text: str) -> int:
        *lines, self._begun = (self._begun + text).split("\n")
        for line in lines:
            self._emit(line)
        return len(text)

    def flush(self) -> None:
        self._target.flush()

    def fileno(self) -> int:
        return self._target.fileno()

    def _emit(self, line: str) -> None:
        if line.strip():
            self._target.write(_line(self._clock(), "ERROR", "stderr", line) + "\n")
            self._target.flush()


# Every line is parsed by a test, so that none names an option that is gone.
EXAMPLES = {
    "demo": "hubbub demo --seed 7",
    "replay": "hubbub replay people.csv --survey visits.toml --out out",
    "simulate": "hubbub simulate people.csv --collector http://127.0.0.1:8780 --compare",
    "audit": "hubbub audit visits.toml --samples 100000",
    "verify": "hubbub verify https://results.example.org --survey visits.toml",
    "log": "hubbub log add data list.bin",
    "log keygen": "hubbub log keygen --name example.org/hubbub --out log.pem",
    "log add": "hubbub log add data list.bin",
    "witness": "hubbub witness keygen --name witness.example.net --out witness.pem",
    "witness keygen": "hubbub witness keygen --name witness.example.net --out witness.pem",
    "witness serve": "hubbub witness serve witness.pem --name witness.example.net --data seen.db --of KEY",
    "monitor": "hubbub monitor https://results.example.org --log-key KEY --witness KEY --state seen.json",
    "survey": "hubbub survey new --id visits --epsilon 3 --integer 0 77 --out visits.toml",
    "survey check": "hubbub survey check visits.toml",
    "survey rehearse": "hubbub survey rehearse visits.toml --value visits=3",
    "survey consent": "hubbub survey consent visits.toml",
    "survey keygen": "hubbub survey keygen --out lists.pem",
    "survey sign": "hubbub survey sign visits.toml --key lists.pem --out list.json",
    "survey dictionary": "hubbub survey dictionary sites.txt --out sites.bin --order order.txt",
    "survey design": "hubbub survey design visits.toml --plot design.png",
    "survey compile": "hubbub survey compile visits.toml --out visits.bin",
    "programme": "hubbub programme surveys --devices 100000 --want visits=1pt",
    "agent": "hubbub agent page --ledger ledger.db",
    "agent answer": "hubbub agent answer --ledger ledger.db --collector http://127.0.0.1:8780"
    " --budget 4 --set visits=3 --join visits",
    "agent status": "hubbub agent status --ledger ledger.db",
    "agent sent": "hubbub agent sent --ledger ledger.db",
    "agent page": "hubbub agent page --ledger ledger.db",
    "agent pause": "hubbub agent pause --ledger ledger.db",
    "agent resume": "hubbub agent resume --ledger ledger.db",
    "agent join": "hubbub agent join --ledger ledger.db visits",
    "agent leave": "hubbub agent leave --ledger ledger.db visits",
    "agent forget": "hubbub agent forget --ledger ledger.db",
    "node": "hubbub node visits.toml --data data --port 8780",
    "export": "hubbub export data --out rounds.csv",
    "delete": "hubbub delete data --survey visits",
    "dead-letters": "hubbub dead-letters data",
    "config": "hubbub config check node.toml --of node",
    "config check": "hubbub config check node.toml --of node",
    "topic": "hubbub topic cluster.toml --partitions 16 --replication 3",
    "collector": "hubbub collector cluster.toml visits.toml",
    "aggregator": "hubbub aggregator cluster.toml --instance worker-1",
    "dashboard": "hubbub dashboard cluster.toml --data data",
    "issuer": "hubbub issuer serve issuer.pem --credentials credentials.txt --data issued.db",
    "issuer keygen": "hubbub issuer keygen issuer.pem",
    "issuer serve": "hubbub issuer serve issuer.pem --credentials credentials.txt --data issued.db",
    "add-partitions": "hubbub add-partitions cluster.toml --partitions 32 --replication 3",
    "skip-lost": "hubbub skip-lost cluster.toml --partition 3 --from 4711",
}


def add_examples(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """End the help of every command and verb with its example, but where it has some of its own."""
    for name, parser in named(commands):
        if parser.epilog is None and name in EXAMPLES:
            parser.epilog = f"example:\n  {EXAMPLES[name]}"
            parser.formatter_class = argparse.RawDescriptionHelpFormatter


def named(
    commands: argparse._SubParsersAction[argparse.ArgumentParser], above: str = ""
) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """Give each parser with the words that call it: a command before its verbs."""
    for word, parser in commands.choices.items():
        yield f"{above}{word}", parser
        for action in parser._actions:
            if isinstance(action, argparse._SubParsersAction):
                yield from named(action, f"{above}{word} ")


_Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"

# Headings of help, each with its commands, in the order of what people do first.
HEADINGS = {
    "try": (demo, replay, evaluate, simulate, audit),
    "ask": (survey, programme, agent),
    "check others": (verify, log, witness, monitor),
    "one machine": (node, export, delete, dead_letters, config),
    "a cluster": (topic, collector, aggregator, dashboard, issuer, add_partitions, skip_lost),
}
FIRST_STEPS = """Streaming data collection under local differential privacy. To begin:

  hubbub demo                          20,190 devices answer three surveys, on a page that moves
  hubbub survey new --help             write a survey of your own
  hubbub replay PEOPLE --survey FILE   run it over a CSV, beside the truth
  hubbub node FILE --data FOLDER       ask devices, on this machine
  hubbub --help                        all commands
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="backslashreplace")  # a label need not be of the terminal's letters
    options = _parser().parse_args(arguments)
    if getattr(options, "log", "text") == "json":
        as_json_lines()
    try:
        with _ending_when_told() if hasattr(options, "log") else contextlib.nullcontext():
            code = int(options.run(options))
        sys.stdout.flush()
        return code
    except (HubbubError, DeployError) as error:
        print(plain(f"hubbub: {error}"), file=sys.stderr)
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
    except OSError as error:
        if error.filename is None:  # none that was named to us
            raise
        print(plain(f"hubbub: {error.filename}: must be usable, got {error.strerror!r}"), file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


@contextlib.contextmanager
def _ending_when_told() -> Iterator[None]:
    """End with exit code 0 at SIGTERM, until a server sets a handler of its own.

    A supervisor may stop a process while it starts, and should not take that for a failure. Files are left as
    by a kill, which all of them stand: an exception that is raised in an import may be lost.
    """
    before = signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="hubbub",
        description="Streaming data collection under local differential privacy.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=version_line())
    parser.set_defaults(run=_first_steps)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", help="one of those below")
    for modules in HEADINGS.values():
        for command in modules:
            command.add_to(commands)
    parser.epilog = _under_headings(commands)
    add_examples(commands)
    return parser


def _under_headings(commands: _Commands) -> str:
    """Return the commands with what they do, under HEADINGS, and take them out of argparse's one list."""
    listed = iter(commands._choices_actions)
    lines = []
    for heading, modules in HEADINGS.items():
        lines.append(f"{heading}:")
        lines += [f"  {each.dest:15}{each.help}" for _, each in zip(modules, listed, strict=False)]
        lines.append("")
    commands._choices_actions.clear()
    return "\n".join([*lines, "hubbub COMMAND --help says what a command takes, with an example."])


def _first_steps(_: argparse.Namespace) -> int:
    print(FIRST_STEPS, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
