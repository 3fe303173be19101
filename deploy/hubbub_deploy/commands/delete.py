"""`hubbub delete`: one survey's data out of a node's files; a rehearsal unless --yes is said."""

from __future__ import annotations

import argparse
from pathlib import Path


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    delete = commands.add_parser("delete", help="delete one survey's data from a stopped node's files")
    delete.add_argument("folder", type=Path, metavar="FOLDER", help="the folder of a stopped node")
    delete.add_argument("--survey", required=True, metavar="ID", help="the survey: its id or its digest")
    delete.add_argument("--yes", action="store_true", help="delete for good; without it, say what would go")
    delete.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Run it, and return its exit code."""
    from hubbub_deploy.deletion import NodeFiles  # noqa: PLC0415 - others need no server library

    with NodeFiles(options.folder) as files:
        digest = files.digest_of(options.survey)
        found = files.traces(digest)
        if options.yes:
            files.delete(digest)
    print(found.survey)
    print(
        f"  log      {found.reports} records of reports, {found.announcements} that announce it, "
        f"{found.seals} that seal its rounds"
    )
    print(f"  store    counts of {_number(found.rounds, 'round')}")
    print(f"  archive  {_number(found.releases, 'release')}")
    print(f"  dead     {_number(found.letters, 'letter')}")
    print(
        "Deleted. Backups, exports and what devices keep are as they were. Do not serve this version again."
        if options.yes
        else "Nothing was deleted. Say --yes to delete it for good."
    )
    return 0


def _number(count: int, of: str) -> str:
    return f"{count} {of}" if count == 1 else f"{count} {of}s"
