"""`hubbub log`: the key of a log of what was published, and lists of surveys with their proofs."""

from __future__ import annotations

import argparse
import contextlib
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from hubbub_deploy.commands.arguments import seconds
from hubbub_deploy.commands.log.options import add_keygen
from hubbub_deploy.errors import DeployError
from hubbub_deploy.files import load_survey, replace_file

if TYPE_CHECKING:
    from hubbub.transparency import Entry

_LOOK_S: Final = 0.2


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command and its verbs."""
    log = commands.add_parser("log", help="the log of what was published, that strangers can check")
    verbs = log.add_subparsers(title="verbs", required=True, metavar="VERB")
    add_keygen(verbs, "log")
    add = verbs.add_parser("add", help="enter lists or surveys; of a list, write the proof beside it")
    add.add_argument(
        "folder", type=Path, metavar="FOLDER", help="the folder of a node or a dashboard that runs"
    )
    add.add_argument("files", nargs="+", type=Path, metavar="FILE", help="signed lists, and surveys")
    add.add_argument(
        "--wait", type=seconds, default=30.0, help="seconds for witnesses to see it (default: %(default)g)"
    )
    add.set_defaults(run=_add)


def _add(options: argparse.Namespace) -> int:
    from hubbub.transparency import PROOF_SUFFIX  # noqa: PLC0415
    from hubbub_aggregator import AggregatorError  # noqa: PLC0415 - others need no server library
    from hubbub_aggregator.stores import TRANSPARENCY_FILE, TransparencyLog  # noqa: PLC0415

    path = options.folder / TRANSPARENCY_FILE
    if not path.is_file():
        raise DeployError(
            f"{options.folder} must be the folder of a node or a dashboard with --log-key, got none"
        )
    entries = {file: _entry(file) for file in options.files}
    until_s = time.monotonic() + options.wait
    try:
        with contextlib.closing(TransparencyLog(path)) as log:
            log.append(entries.values())
            for file, entry in entries.items():
                while (proof := log.proof(entry)) is None:
                    if time.monotonic() >= until_s:
                        raise DeployError(
                            f"{file} is in the log and not published yet: the node or dashboard must run, "
                            "and its witnesses; say it again then"
                        )
                    time.sleep(_LOOK_S)
                if entry.kind == "list":
                    beside = file.with_name(file.name + PROOF_SUFFIX)
                    replace_file(beside, proof.encode())
                    print(f"{file}: logged; its proof is {beside}")
                else:
                    print(f"{file}: logged")
    except AggregatorError as error:
        raise DeployError(str(error)) from error
    return 0


def _entry(path: Path) -> Entry:
    """Return the entry of a signed list, or else of a survey."""
    from hubbub.errors import ListError  # noqa: PLC0415
    from hubbub.small_file import read_small, unreadable  # noqa: PLC0415
    from hubbub.survey import MAX_LIST_BYTES  # noqa: PLC0415
    from hubbub.transparency import list_entry, survey_entry  # noqa: PLC0415

    try:
        return list_entry(read_small(path, limit=MAX_LIST_BYTES))
    except OSError as error:
        raise DeployError(f"{path} cannot be read: {unreadable(error)}") from None
    except ListError:
        return survey_entry(load_survey(path).canonical)
