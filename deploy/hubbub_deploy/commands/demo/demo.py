"""`hubbub demo`: the whole way on real data."""

from __future__ import annotations

import argparse
from pathlib import Path

from hubbub_deploy.commands.arguments import add_result, port, positive, whole


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
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
    add_result(demo)
    demo.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Run it, and return its exit code."""
    from hubbub_deploy.commands.demo import demonstration  # noqa: PLC0415 - `hubbub survey` needs no server library

    return demonstration.run(
        demonstration.DemoSettings(
            seed=options.seed,
            port=options.port,
            people=options.people,
            data_dir=options.data,
            page=options.page,
            rows="all" if options.all else "most frequent",
            output="json" if options.json else "table",
        )
    )
