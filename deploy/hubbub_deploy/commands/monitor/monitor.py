"""`hubbub monitor`: reads what witnesses do not, the entries of a log, and holds a server beside them."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from hubbub_deploy.commands.arguments import seconds
from hubbub_deploy.commands.log import add_policy, policy_of
from hubbub_deploy.errors import DeployError
from hubbub_deploy.files import replace_file
from hubbub_lab.texts import plain

if TYPE_CHECKING:
    from hubbub import Survey
    from hubbub_deploy.transparency import SeenLog
    from hubbub_results import SurveyResults

_HOUR_S: Final = 3_600.0


@dataclass(frozen=True, slots=True)
class _Look:
    """The memory of a monitor: the log's size and root at its last look, and when that was."""

    size: int
    root: str
    looked_s: float


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    monitor = commands.add_parser(
        "monitor", help="hold a server beside its log: what was rewritten or held back"
    )
    monitor.add_argument("source", metavar="URL", help="a node's or a dashboard's address")
    add_policy(monitor)
    monitor.add_argument(
        "--state", type=Path, required=True, metavar="FILE", help="what the look before this one saw"
    )
    monitor.add_argument(
        "--hours",
        type=seconds,
        default=24.0,
        help="within which a round's release, and a list, must be in the log (default: %(default)g)",
    )
    monitor.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Look once, and return the exit code: 1 where anything is wrong, 2 where it cannot be seen."""
    from hubbub import HubbubError  # noqa: PLC0415 - other commands need no survey
    from hubbub.transparency import NotLoggedError  # noqa: PLC0415
    from hubbub_deploy.transparency import read_log  # noqa: PLC0415
    from hubbub_results import ResultsError, connect  # noqa: PLC0415 - others need no client

    now_s, patience_s = time.time(), options.hours * _HOUR_S
    try:
        if (policy := policy_of(options)) is None:
            raise DeployError("--log-key must name the log, got none")
        before = _before(options.state)
        log = read_log(options.source, policy)
        wrong = [*log.faults, *_rewritten(log, before)]
        if not wrong:
            wrong += _lists(log, before, patience_s)
            wrong += _server(log, connect(options.source).surveys(), before, now_s, patience_s)
    except NotLoggedError as error:
        wrong, log = [str(error)], None
    except (HubbubError, DeployError, ResultsError, ValueError) as error:
        print(plain(f"hubbub: {error}"), file=sys.stderr)
        return 2
    for each in wrong:
        print(plain(each))
    if log is not None and not any(_rewritten(log, before)):
        seen = log.witnessed
        look = {"size": seen.checkpoint.size, "root": log.root(seen.checkpoint.size).hex(), "looked_s": now_s}
        replace_file(options.state, json.dumps(look).encode())
        names = ", ".join(sorted(seen.seen)) or "no witness"
        print(
            f"{seen.checkpoint.origin}: {seen.checkpoint.size:,} entries, seen by {names}; {len(wrong)} wrong"
        )
    return 1 if wrong else 0


def _before(path: Path) -> _Look | None:
    try:
        found = json.loads(path.read_bytes())
        return _Look(int(found["size"]), str(found["root"]), float(found["looked_s"]))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise DeployError(f"{path} must be what a monitor wrote, got {type(error).__name__}") from None


def _rewritten(log: SeenLog, before: _Look | None) -> Iterator[str]:
    """Yield what is no growth of the log that the last look saw."""
    if before is None:
        return
    size = log.witnessed.checkpoint.size
    if size < before.size:
        yield f"the log was rolled back from {before.size:,} entries to {size:,}"
    elif log.root(before.size).hex() != before.root:
        yield f"the log's first {before.size:,} entries are not those of the last look: it was rewritten"


def _lists(log: SeenLog, before: _Look | None, patience_s: float) -> Iterator[str]:
    """Yield lists that are dated before others of lower numbers, or before a look that did not see them."""
    newest = (0, 0)
    for place, entry in enumerate(log.entries):
        if entry is None or entry.kind != "list":
            continue
        sequence, _, issued_s, _ = map(int_of, entry.fields)
        if sequence < newest[0] or issued_s < newest[1]:
            yield f"entry {place}: list {sequence} came after list {newest[0]}, and is dated before it"
        newest = max(newest, (sequence, issued_s))
        if before is not None and place >= before.size and issued_s < before.looked_s - patience_s:
            yield f"entry {place}: list {sequence} is dated before a look that did not see it"


def int_of(field: bytes | int) -> int:
    """Return a field that is an integer; 0 of a hash."""
    return field if isinstance(field, int) else 0


def _server(
    log: SeenLog, surveys: list[SurveyResults], before: _Look | None, now_s: float, patience_s: float
) -> Iterator[str]:
    from hubbub import Survey  # noqa: PLC0415 - other commands need no survey

    shown: set[bytes] = set()
    for results in surveys:
        survey = Survey.from_canonical(results.canonical())
        shown.add(survey.digest)
        yield from _survey(log, survey, before, now_s)
        yield from _rounds(log, survey, results, now_s, patience_s)
    erased = {entry.fields[0] for entry in log.entries if entry is not None and entry.kind == "erased"}
    released = {entry.fields[0] for entry in log.entries if entry is not None and entry.kind == "release"}
    for digest in released - shown - erased:
        name = digest.hex() if isinstance(digest, bytes) else digest
        yield f"survey {name}: its releases are in the log, and the server has none of them"


def _survey(log: SeenLog, survey: Survey, before: _Look | None, now_s: float) -> Iterator[str]:
    """Yield a survey that is not in the log, or was put there after its first round began."""
    from hubbub.transparency import survey_entry  # noqa: PLC0415

    entry, name = survey_entry(survey.canonical), f"{survey.id} v{survey.version}"
    found = log.of_key(entry)
    if found is None:
        if survey.start_s < now_s:
            yield f"{name}: it has begun, and is not in the log"
    elif found[1] != entry:
        yield f"{name}: the server has another survey than entry {found[0]}"
    elif before is not None and found[0] >= before.size and survey.start_s < before.looked_s:
        yield f"{name}: entry {found[0]} was not there when its first round had begun: it is back-dated"
    else:
        earlier = next(
            (
                place
                for place, each in enumerate(log.entries[: found[0]])
                if each is not None and each.kind == "release" and each.fields[0] == survey.digest
            ),
            None,
        )
        if earlier is not None:
            yield f"{name}: entry {found[0]} came after its own release, entry {earlier}: it is back-dated"


def _rounds(
    log: SeenLog, survey: Survey, results: SurveyResults, now_s: float, patience_s: float
) -> Iterator[str]:
    """Yield rounds whose release is held back, withdrawn, or another than the log's."""
    from hubbub.transparency import Entry, hash_of  # noqa: PLC0415

    sealed = {line["round"] for line in results.rounds() if line["sealed"]}
    for number in range(1, survey.rounds + 1):
        over_s = survey.round_end_s(number - 1) + survey.lateness_s
        if over_s > now_s and number not in sealed:
            break
        document = results.sealed(number) if number in sealed else b""
        said = hash_of(document)
        entry, name = (
            Entry("release", (survey.digest, number, said)),
            f"{survey.id} v{survey.version}, round {number}",
        )
        found = log.of_key(entry)
        if found is None:
            if over_s + patience_s < now_s:
                what = (
                    "its release is not in the log"
                    if document
                    else "no release: held back, or nobody answered"
                )
                yield f"{name}: {what}"
        elif not document:
            yield f"{name}: entry {found[0]} is its release, and the server has none"
        elif found[1] != entry:
            yield f"{name}: the server has another release than entry {found[0]}"
        elif (counted := log.counted(survey.digest, number)) is None:
            if over_s + patience_s < now_s:
                yield f"{name}: the log does not list the answers that count"
        elif counted[1] != (accepted := _accepted(document)):
            yield f"{name}: entry {counted[0]} lists {counted[1]} answers, {accepted} were counted"


def _accepted(document: bytes) -> object:
    """Return how many reports a release says were accepted; None of bytes that are no release."""
    try:
        return json.loads(document)["accounting"]["accepted"]
    except (KeyError, TypeError, ValueError, RecursionError):
        return None
