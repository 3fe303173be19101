"""`hubbub export`: every release of an archive as one table, CSV or Parquet."""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hubbub_deploy.errors import DeployError
from hubbub_deploy.files import ARCHIVE_FILE

FORMS = (".csv", ".parquet")


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    export = commands.add_parser("export", help="every release as one table, CSV or Parquet")
    export.add_argument(
        "folder", type=Path, metavar="FOLDER", help="a node's or a dashboard's folder; it may be running"
    )
    export.add_argument(
        "--out",
        type=_table,
        required=True,
        metavar="FILE",
        help="a file to write, .csv or .parquet; one that is there is replaced; - for CSV on stdout",
    )
    export.add_argument("--survey", metavar="ID", help="releases of this survey alone: its id or its digest")
    export.add_argument(
        "--view",
        choices=("raw", "consistent", "empirical_bayes", "all"),
        default="all",
        help="raw estimates with intervals, another view, or all of them (default: %(default)s)",
    )
    export.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Run it, and return its exit code."""
    from hubbub_aggregator.export import VIEWS, csv_pieces, tidy_rows, write_parquet  # noqa: PLC0415

    views = VIEWS if options.view == "all" else (options.view,)
    seen: list[int] = []
    out: Path = options.out
    with _documents(options.folder, options.survey, seen) as documents:
        rows = tidy_rows(documents, views=views)
        try:
            if str(out) == "-":
                for piece in csv_pieces(rows):
                    sys.stdout.buffer.write(piece)
            elif out.suffix.lower() == ".csv":
                made = out.with_name(f".{out.name}.part")
                try:
                    with made.open("wb") as file:
                        file.writelines(csv_pieces(rows))
                    made.replace(out)
                finally:
                    made.unlink(missing_ok=True)
            else:
                write_parquet(rows, out)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise DeployError(f"{out} must be a file to write, got {error.strerror!r}") from error
    releases = "1 release" if len(seen) == 1 else f"{len(seen)} releases"
    print(f"{releases}, {sum(seen)} with too few devices for estimates", file=sys.stderr)
    return 0


def _table(text: str) -> Path:
    path = Path(text)
    if text != "-" and path.suffix.lower() not in FORMS:
        raise argparse.ArgumentTypeError(f"must end in {' or '.join(FORMS)}, got {text!r}")
    return path


@contextlib.contextmanager
def _documents(folder: Path, survey: str | None, seen: list[int]) -> Iterator[Iterator[dict[str, Any]]]:
    """Give the releases of a folder's archive, one after another, and note which are suppressed.

    Raises:
        DeployError: If there is no archive, it is damaged or has no release of this method of the survey.
    """
    from hubbub_aggregator import AggregatorError  # noqa: PLC0415 - others need no server library
    from hubbub_aggregator.release import archived_release  # noqa: PLC0415
    from hubbub_aggregator.stores import SqliteArchive  # noqa: PLC0415

    path = folder / ARCHIVE_FILE
    if str(folder).startswith("kafka:"):
        raise DeployError(
            "an export must be of the releases in a folder, got a topic: `hubbub replay TOPIC --survey FILE "
            "--out FOLDER` counts one survey's releases out of it"
        )
    if not path.is_file():
        raise DeployError(f"{folder} must be the folder of a node or a dashboard, got one without an archive")

    def read() -> Iterator[dict[str, Any]]:
        for key in archive.rounds():
            document = archived_release(key, archive.get(key) or b"{}")
            if survey in (None, document["survey"]["id"], document["survey"]["digest"]):
                seen.append(bool(document["suppressed"]))
                yield document
        if survey is not None and not seen:
            raise DeployError(f"survey must be one that has a release in {folder}, got {survey}")

    try:
        with contextlib.closing(SqliteArchive(path)) as archive:
            yield read()
    except AggregatorError as error:
        raise DeployError(str(error)) from error
