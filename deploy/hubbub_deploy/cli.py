"""The `hubbub` command: what an analyst, an operator and a researcher type.

Results go to stdout, talk to stderr. Exit 0: done; 1: it failed, in one line; 2: misuse.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from hubbub.errors import HubbubError
from hubbub_deploy import fleet_options
from hubbub_deploy.commands import agent, cluster
from hubbub_deploy.commands import survey as survey_cli
from hubbub_deploy.commands.arguments import add_skip, port, positive, seconds, whole
from hubbub_deploy.errors import DeployError

if TYPE_CHECKING:
    from hubbub import Channel, Survey

DEFAULT_PORT = 8780


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    options = _parser().parse_args(arguments)
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
        rule = f"the package {error.name} must be installed: pip install 'hubbub[server,bench]'"
        print(f"hubbub: {rule}", file=sys.stderr)
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
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")

    demo = commands.add_parser("demo", help="the whole way on real data, and a page at a printed URL")
    demo.add_argument("--seed", type=whole, help="make the run repeatable; without it every run differs")
    demo.add_argument("--port", type=port, default=0, help="port of the page (default: any free one)")
    demo.add_argument(
        "--people",
        type=positive,
        default=None,
        help="how many of the 20,190 devices take part (default: all)",
    )
    demo.add_argument("--data", type=Path, help="keep the node's files here (default: a temporary folder)")
    demo.add_argument(
        "--page",
        choices=("auto", "hold", "close"),
        default="auto",
        help="hold the page open after the table until Ctrl-C; auto: where stdout is a terminal",
    )
    demo.add_argument("--all", action="store_true", help="print every value, not only the most frequent")
    demo.add_argument("--json", action="store_true", help="print the result as JSON")
    demo.set_defaults(run=_demo)

    node = commands.add_parser("node", help="collector, aggregator and dashboard in one process on SQLite")
    node.add_argument("surveys", nargs="+", type=Path, metavar="SURVEY", help="survey files (TOML)")
    node.add_argument("--list", type=Path, help="signed list of surveys to serve, from `hubbub survey sign`")
    node.add_argument("--data", type=Path, required=True, help="folder of the log, the store and the archive")
    fleet_options.add_to(node)
    node.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    node.add_argument("--port", type=port, default=DEFAULT_PORT, help="default: %(default)s; 0 for any")
    node.add_argument("--partitions", type=positive, default=4, help="of a new log (default: %(default)s)")
    node.add_argument(
        "--grace",
        type=seconds,
        default=5.0,
        help="seconds from a round's last moment to its seal (default: %(default)s)",
    )
    node.add_argument(
        "--dead-letter-payload",
        choices=("none", "whole"),
        default="none",
        help="whether dead letters hold the bytes of their records (default: %(default)s)",
    )
    add_skip(node)
    node.set_defaults(run=_node)

    _add_replay(commands)

    _add_survey(commands)
    agent.add_to(commands)
    cluster.add_to(commands)
    return parser


def _add_survey(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    survey = commands.add_parser("survey", help="begin, check, compile and sign surveys")
    verbs = survey.add_subparsers(title="verbs", required=True, metavar="VERB")
    check = verbs.add_parser("check", help="compile it and say what a device would be asked for")
    check.add_argument("file", type=Path)
    check.add_argument("--json", action="store_true", help="print the facts as JSON")
    check.set_defaults(run=_survey_check)
    design = verbs.add_parser("design", help="what it buys: every mechanism that fits, by exact variance")
    design.add_argument("file", type=Path)
    design.add_argument(
        "--objective",
        choices=("value", "category", "both", "mean", "cdf", "shape", "hit"),
        help="what mechanisms are judged by (default: the mean for numbers; values, and categories if any)",
    )
    design.add_argument("--within", type=float, help="for hit: how near a report must be to its value")
    design.add_argument("--plot", type=Path, help="draw the trade-offs here (.png, .svg, .pdf, .html)")
    design.add_argument(
        "--write", type=Path, help="write the survey with the best mechanism in place of its own here"
    )
    design.add_argument("--json", action="store_true", help="print the design as JSON")
    design.set_defaults(run=_survey_design)
    compiled = verbs.add_parser("compile", help="write the canonical bytes that devices and servers agree on")
    compiled.add_argument("file", type=Path)
    compiled.add_argument("--out", type=Path, required=True, help="file to write")
    compiled.set_defaults(run=_survey_compile)

    survey_cli.add_to(verbs)


def _add_replay(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    replay = commands.add_parser(
        "replay", help="the same code offline: a CSV against its truth, or a log counted again"
    )
    replay.add_argument(
        "source",
        metavar="CSV|FOLDER|TOPIC",
        help="one device per row, with a header; a node's folder; or kafka://host:port/topic",
    )
    replay.add_argument(
        "--survey",
        type=Path,
        action="append",
        default=[],
        help="survey file (TOML); may be repeated; a log holds its surveys, a CSV needs one",
    )
    replay.add_argument(
        "--archive", type=Path, help="compare a log's releases with those in this folder, byte for byte"
    )
    replay.add_argument(
        "--column",
        action="append",
        default=[],
        metavar="ATTRIBUTE=COLUMN",
        help="where an attribute's column has another name; may be repeated",
    )
    replay.add_argument("--seed", type=whole, help="make the run repeatable")
    replay.add_argument("--out", type=Path, help="write the plots and the releases into this folder")
    replay.add_argument("--all", action="store_true", help="print every value, not only the most frequent")
    replay.add_argument("--json", action="store_true", help="print the result as JSON")
    replay.set_defaults(run=_replay, misuse=replay.error)


def _demo(options: argparse.Namespace) -> int:
    from hubbub_deploy.commands.demo import DemoSettings, run  # noqa: PLC0415 - `hubbub survey` needs no server library

    return run(
        DemoSettings(
            seed=options.seed,
            port=options.port,
            people=options.people,
            data_dir=options.data,
            page=options.page,
            rows="all" if options.all else "most frequent",
            output="json" if options.json else "table",
        )
    )


def _node(options: argparse.Namespace) -> int:
    from hubbub import Survey  # noqa: PLC0415
    from hubbub_deploy.node import NodeSettings, serve  # noqa: PLC0415

    surveys = tuple(Survey.load(path) for path in options.surveys)
    fleet = fleet_options.fleet_statement(options)
    known = {survey.id for survey in surveys}
    # a list may bring surveys that nobody knows yet
    if options.list is None and (strange := sorted(fleet.asked.keys() - known - {""})):
        raise DeployError(f"--asked must name one of {', '.join(sorted(known))}, got {', '.join(strange)}")
    return serve(
        NodeSettings(
            surveys=surveys,
            data_dir=options.data,
            survey_list=options.list,
            fleet=fleet,
            host=options.host,
            port=options.port,
            partitions=options.partitions,
            grace_s=options.grace,
            skip=options.skip,
            dead_letter_payload=options.dead_letter_payload,
        )
    )


def _replay(options: argparse.Namespace) -> int:
    from hubbub_deploy.commands import log_replay  # noqa: PLC0415

    if log_replay.is_log(options.source):
        return log_replay.run(
            log_replay.LogReplaySettings(
                source=options.source,
                surveys=tuple(options.survey),
                archive=options.archive,
                out=options.out,
                output="json" if options.json else "table",
            )
        )
    if not options.survey:
        options.misuse("the following arguments are required: --survey")
    if options.archive is not None:
        options.misuse("--archive is compared with a log's releases, and a CSV has none")
    from hubbub_deploy.commands.replay import ReplaySettings, run  # noqa: PLC0415 - it plots, and a server cannot

    columns = {}
    for pair in options.column:
        attribute, found, column = pair.partition("=")
        if not found:
            raise DeployError(f"--column must be ATTRIBUTE=COLUMN, got {pair!r}")
        columns[attribute] = column
    return run(
        ReplaySettings(
            csv=Path(options.source),
            surveys=tuple(options.survey),
            columns=columns,
            seed=options.seed,
            out=options.out,
            rows="all" if options.all else "most frequent",
            output="json" if options.json else "table",
        )
    )


def _survey_check(options: argparse.Namespace) -> int:
    from hubbub import Survey  # noqa: PLC0415

    survey = Survey.load(options.file)
    facts = {
        "id": survey.id,
        "version": survey.version,
        "title": survey.title,
        "attributes": [attribute.id for attribute in survey.attributes],
        "kind": "static" if all(each.kind == "static" for each in survey.attributes) else "evolving",
        "inputs": survey.channel.inputs,
        **_symbols(survey.channel),
        **_choice(survey),
        "categories": list(survey.category_names),
        "declared_epsilon": survey.epsilon,
        "epsilon": survey.channel.epsilon,
        "rounds": survey.rounds,
        **_quota(survey),
        "digest": survey.digest.hex(),
    }
    if options.json:
        print(json.dumps(facts, ensure_ascii=False))
    else:
        for key, value in facts.items():
            print(f"{key:18} {_read(value)}")
    return 0


def _quota(survey: Survey) -> dict[str, object]:
    """Return the quota and what it does not protect from; nothing where the survey has none."""
    if survey.quota is None:
        return {}
    return {
        "quota": survey.quota,
        "beware": "anybody may upload, so one stranger can fill a round with reports of its own, and nobody "
        "else's count then; let only known devices reach the collector where that matters",
    }


def _choice(survey: Survey) -> dict[str, object]:
    """Return what "auto" chose in this file, and why; nothing where the file names its mechanism."""
    if survey.choice is None:
        return {}
    return {
        "mechanism": {"name": survey.choice.mechanism, **survey.choice.parameters},
        "why": f"auto: {survey.choice.why}",
    }


def _read(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(str(item) if key == "name" else f"{key} {item}" for key, item in value.items())
    return ", ".join(value) if isinstance(value, list) else str(value)


def _symbols(channel: Channel) -> dict[str, int]:
    """Return the kind of a report's symbol: so many numbers, or sets of so many cells."""
    from hubbub.channels import SetChannel  # noqa: PLC0415

    if isinstance(channel, SetChannel):
        return {"cells": channel.bins, "symbol_bytes": channel.width}
    return {"outputs": channel.bins}


def _survey_design(options: argparse.Namespace) -> int:
    from hubbub_deploy.commands.design import DesignSettings, run  # noqa: PLC0415

    return run(
        DesignSettings(
            file=options.file,
            objective=options.objective,
            within=options.within,
            plot=options.plot,
            write=options.write,
            output="json" if options.json else "table",
        )
    )


def _survey_compile(options: argparse.Namespace) -> int:
    from hubbub import Survey  # noqa: PLC0415

    survey = Survey.load(options.file)
    try:
        options.out.write_bytes(survey.canonical)
    except OSError as error:
        raise DeployError(f"{options.out}: cannot be written: {error.strerror}") from None
    print(f"{len(survey.canonical)} bytes, digest {survey.digest.hex()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
