"""`hubbub delete`: a survey of a node, or all of a cluster; a rehearsal unless --yes is said."""

from __future__ import annotations

import argparse
from pathlib import Path

from hubbub_deploy.commands.arguments import load_settings


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    delete = commands.add_parser("delete", help="delete a survey of a node, or all of a cluster, for good")
    delete.add_argument(
        "folder",
        type=Path,
        metavar="FOLDER",
        help="the folder of a stopped node, or of a cluster's dashboard",
    )
    what = delete.add_mutually_exclusive_group(required=True)
    what.add_argument("--survey", metavar="ID", help="one survey of a node: its id or its digest")
    what.add_argument(
        "--cluster", type=Path, metavar="SETTINGS", help="everything of the cluster of these settings"
    )
    delete.add_argument("--yes", action="store_true", help="delete for good; without it, say what would go")
    delete.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Run it, and return its exit code."""
    if options.cluster is None:
        _delete_survey(options.folder, options.survey, is_meant=options.yes)
    else:
        _delete_cluster(options.folder, options.cluster, is_meant=options.yes)
    print(
        "Deleted. Backups, exports and what devices keep are as they were. Do not serve this version again."
        if options.yes
        else "Nothing was deleted. Say --yes to delete it for good."
    )
    return 0


def _delete_survey(folder: Path, name: str, *, is_meant: bool) -> None:
    from hubbub_deploy.commands.delete.node_deletion import NodeFiles  # noqa: PLC0415 - others need no server library

    with NodeFiles(folder) as files:
        digest = files.digest_of(name)
        found = files.traces(digest)
        if is_meant:
            files.delete(digest)
    print(found.survey)
    print(
        f"  log      {found.reports} records of reports, {found.announcements} that announce it, "
        f"{found.seals} that seal its rounds"
    )
    print(f"  store    counts of {_number(found.rounds, 'round')}")
    beside = f", {_number(found.recounts, 'recount')} beside it" if found.recounts else ""
    print(f"  archive  {_number(found.releases, 'release')}{beside}")
    print(f"  dead     {_number(found.letters, 'letter')}")


def _delete_cluster(folder: Path, settings_path: Path, *, is_meant: bool) -> None:
    from hubbub_deploy.commands.delete.cluster_deletion import cluster_traces, delete_cluster  # noqa: PLC0415 - see above

    settings = load_settings(settings_path)
    found = cluster_traces(settings, folder)
    if is_meant:
        delete_cluster(settings, folder)
    print(f"cluster of {settings_path}, all surveys")
    print(f"  topics   {', '.join(found.topics) or 'none'}")
    print(f"  redis    {_number(found.keys, 'key')} of the namespace {settings.namespace}")
    print(f"  archive  {', '.join(map(str, found.files)) or 'none'}")


def _number(count: int, of: str) -> str:
    return f"{count} {of}" if count == 1 else f"{count} {of}s"
