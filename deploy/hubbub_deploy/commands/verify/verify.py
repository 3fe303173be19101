"""`hubbub verify`: releases made again from their public counts, by whoever doubts them."""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeGuard

from hubbub_deploy.commands.log import add_policy, policy_of
from hubbub_deploy.errors import DeployError
from hubbub_deploy.files import ARCHIVE_FILE, load_survey
from hubbub_lab.texts import plain

if TYPE_CHECKING:
    from hubbub import Survey
    from hubbub_deploy.transparency import SeenLog

SAME, DIFFERENT, UNKNOWN = range(3)
"""The exit codes: everything is as its counts say; something differs; something cannot be checked."""

_SHOWN: Final = 20
"""The most differences of one round that are told."""


@dataclass(frozen=True, slots=True)
class Printed:
    """A release as it was printed, with what lies beside it.

    Attributes:
        name: Where it was found, in one line.
        document: The release: whatever somebody printed, with a survey in it.
        counts: The bytes of its public counts; None where there are none.
        survey: The canonical bytes of its survey; None where they are not there.
    """

    name: str
    document: dict[str, Any]
    counts: bytes | None
    survey: bytes | None

    def __post_init__(self) -> None:
        if not _is_release(self.document):
            raise DeployError(f"{self.name} must be a release, got another document")


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    verify = commands.add_parser("verify", help="releases made again from their public counts")
    verify.add_argument(
        "source",
        metavar="URL|FILE|FOLDER",
        help="a node's or a dashboard's address; a release with its .counts file beside it; the folder of a "
        "node or a dashboard, or one that `hubbub replay --out` wrote",
    )
    verify.add_argument(
        "--survey",
        type=Path,
        action="append",
        default=[],
        metavar="FILE",
        help="the survey as you know it; releases of others are left out; may be repeated",
    )
    add_policy(verify)
    verify.add_argument(
        "--log",
        metavar="URL|FOLDER",
        help="where the log is, if not at the source: of a folder that `hubbub replay --out` wrote",
    )
    verify.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Run it, and return its exit code: 1 where anything differs, else 2 where anything is not known."""
    from hubbub import HubbubError  # noqa: PLC0415 - other commands need no survey
    from hubbub.transparency import NotLoggedError  # noqa: PLC0415 - as above
    from hubbub_deploy.transparency import read_log  # noqa: PLC0415 - as above

    codes: list[int] = []
    try:
        own = {survey.digest.hex(): survey for survey in map(load_survey, options.survey)}
        known: dict[str, Survey] = dict(own)
        policy = policy_of(options)
        log = None if policy is None else read_log(options.log or options.source, policy)
        for fault in () if log is None else log.faults:
            print(f"the log: {fault}")
            codes.append(DIFFERENT)
        for printed in _printed(options.source):
            digest = str(printed.document["survey"].get("digest"))
            if not own or digest in own:
                codes.append(_told(printed, digest, known))
                if log is not None:
                    codes.append(_logged(printed, digest, log))
        if not codes:
            raise DeployError(f"{options.source} must have sealed releases of these surveys, got none")
    except NotLoggedError as error:
        print(f"the log: {error}")
        codes.append(DIFFERENT)
    except (HubbubError, DeployError, OSError) as error:
        # Nobody is accused by a file that cannot be read: 1 is for a number that differs.
        print(plain(f"hubbub: {error}"), file=sys.stderr)
        codes.append(UNKNOWN)
    return DIFFERENT if DIFFERENT in codes else max(codes)


def _told(printed: Printed, digest: str, known: dict[str, Survey]) -> int:
    """Say a line about one release, and lines about its differences; return its exit code."""
    from hubbub import HubbubError, Survey  # noqa: PLC0415 - other commands need no survey
    from hubbub_aggregator.release import verify  # noqa: PLC0415

    document = printed.document
    is_hidden = document.get("suppressed") is True and document.get("counts") is None
    if is_hidden and digest not in known and printed.survey is None:
        print(f"{printed.name}: too few devices, it says; without its survey nobody can tell")
        return SAME
    try:
        if digest not in known:
            if printed.survey is None:
                raise DeployError("its survey is not there; give it by --survey")
            survey = Survey.from_canonical(printed.survey)
            known[survey.digest.hex()] = survey
        if digest not in known:
            raise DeployError("the survey beside it is another one")
        if not is_hidden and (printed.counts is None or not document.get("counts")):
            raise DeployError("it has no public counts")
        checked = verify(known[digest], document, None if is_hidden else printed.counts)
    except (HubbubError, DeployError) as error:
        print(f"{printed.name}: cannot be checked; {error}")
        return UNKNOWN
    wrong = checked.differences
    if is_hidden and not wrong:
        print(f"{printed.name}: too few devices, no numbers to check")
        return SAME
    print(
        f"{printed.name}: {checked.exact:,} facts exact, {checked.within:,} numbers by the counts alone, "
        f"{checked.again:,} by this version's estimator, {len(wrong):,} differ"
    )
    for place in wrong[:_SHOWN]:
        print(f"  {place}")
    if len(wrong) > _SHOWN:
        print(f"  and {len(wrong) - _SHOWN:,} more")
    print(f"{printed.name}: not checked: {', '.join(checked.unchecked) or 'nothing'}", file=sys.stderr)
    return DIFFERENT if wrong else SAME


def _logged(printed: Printed, digest: str, log: SeenLog) -> int:
    """Say where a release is in the log; return its exit code."""
    from hubbub import HubbubError  # noqa: PLC0415 - other commands need no survey
    from hubbub.transparency import Entry  # noqa: PLC0415 - other commands need no log
    from hubbub_aggregator.release import sealed_hash  # noqa: PLC0415 - as above

    seen = log.witnessed.seen
    try:
        fields = (bytes.fromhex(digest), printed.document["round"], sealed_hash(printed.document))
        entry = Entry("release", fields)
        accepted = int(printed.document["accounting"]["accepted"])
    except (HubbubError, KeyError, TypeError, ValueError):
        found = None  # nothing of another shape was ever entered
    else:
        found = log.of_key(entry)
    if found is None:
        print(f"{printed.name}: is not in the log")
    elif found[1] != entry:
        print(f"{printed.name}: another release than that of the log, at {found[0]:,}")
    else:
        print(
            f"{printed.name}: in the log at {found[0]:,}, seen by {', '.join(sorted(seen)) or 'no witness'}"
        )
        counted = log.counted(*fields[:2])
        if counted is None:
            print(f"{printed.name}: devices cannot look for their answers, the log has no list of them")
            return SAME
        if counted[1] == accepted:
            return SAME
        print(f"{printed.name}: entry {counted[0]} lists {counted[1]:,} answers, {accepted:,} counted")
    return DIFFERENT


def _printed(source: str) -> Iterator[Printed]:
    """Yield the sealed releases of a source.

    Raises:
        DeployError: If the source cannot be read.
    """
    path = Path(source)
    if source.startswith(("http://", "https://")):
        yield from _of_server(source)
    elif (path / ARCHIVE_FILE).is_file():
        yield from _of_archive(path)
    elif path.is_dir():
        found = [each for each in sorted(path.glob("*.json")) if _is_release(_document(each))]
        yield from map(_of_file, found)
    else:
        yield _of_file(path)


def _of_file(path: Path) -> Printed:
    document = _document(path)
    surveys = (_bytes(each) for each in sorted(path.parent.glob("*.survey")))
    survey = _of_digest(document, surveys) if _is_release(document) else None
    return Printed(plain(path.name), document, _bytes(path.with_suffix(".counts")), survey)


def _of_digest(document: dict[str, Any], surveys: Iterator[bytes | None]) -> bytes | None:
    """Return the survey's bytes of whichever has the release's digest."""
    from hubbub.survey import digest_of  # noqa: PLC0415

    due = document["survey"].get("digest")
    return next((data for data in surveys if data is not None and digest_of(data).hex() == due), None)


def _of_archive(folder: Path) -> Iterator[Printed]:
    from hubbub_aggregator import AggregatorError  # noqa: PLC0415 - others need no server library
    from hubbub_aggregator.stores import SURVEY_ROW, SqliteArchive  # noqa: PLC0415

    try:
        with contextlib.closing(SqliteArchive(folder / ARCHIVE_FILE)) as archive:
            for key in archive.rounds():
                document = json.loads(archive.get(key) or b"{}")
                yield Printed(
                    _name(document), document, archive.counts(key), archive.counts((key[0], SURVEY_ROW))
                )
    except (AggregatorError, ValueError, RecursionError) as error:
        raise DeployError(f"{folder / ARCHIVE_FILE}: {error}") from error


def _of_server(url: str) -> Iterator[Printed]:
    from hubbub_results import NotFoundError, ResultsError, connect  # noqa: PLC0415 - others need no client

    def got(ask: Callable[[], bytes]) -> bytes | None:
        try:
            return ask()
        except NotFoundError:
            return None

    try:
        for survey in connect(url).surveys():
            canonical = got(survey.canonical)
            for line in survey.rounds():
                if line["sealed"]:
                    document = json.loads(survey.sealed(line["round"]))
                    counts = got(lambda survey=survey, line=line: survey.counts(line["round"]))  # type: ignore[misc]  # bound now
                    yield Printed(_name(document), document, counts, canonical)
    except (ResultsError, ValueError, RecursionError) as error:
        raise DeployError(str(error)) from error


def _name(document: object) -> str:
    if not _is_release(document):
        return "a document"
    survey = document["survey"]
    return plain(f"{survey.get('id')} v{survey.get('version')}, round {document.get('round')}")


def _is_release(document: Any) -> TypeGuard[dict[str, Any]]:  # noqa: ANN401 - of JSON
    return isinstance(document, dict) and isinstance(document.get("survey"), dict) and "sealed" in document


def _document(path: Path) -> Any:  # noqa: ANN401 - of JSON
    try:
        return json.loads(path.read_bytes())
    except OSError as error:
        raise DeployError(f"{path} must be a release, got {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise DeployError(f"{path} must be a release, got what is no JSON: {error}") from error


def _bytes(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        return None
