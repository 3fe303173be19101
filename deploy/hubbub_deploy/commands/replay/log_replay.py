"""A log counted again, offline: a node's folder or a Kafka topic, from its first record to its last.

Nothing is written but what the caller asks for: counts live in memory, and the log is only read. Every round
that all partitions have sealed is released by the code of the first time; an archive of that time is compared
with it, but for what its operator stated about the fleet, which no log holds. One processor gives the same
bytes; another may round last digits of a matrix product otherwise, so that numbers within 2^-40 are the same.
A recount without an issuer is published beside its release only where nothing then shows a small group.
"""

from __future__ import annotations

import contextlib
import json
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from hubbub import Survey
from hubbub.checking import Checked, compare
from hubbub.survey import number_of_round
from hubbub.transparency import Entry, hash_of
from hubbub.wire import PartitionMap, encode_counts
from hubbub_aggregator import AggregatorError, ArchiveError
from hubbub_aggregator.counting import OTHERS, RoundKey, SealRules
from hubbub_aggregator.release import (
    UNKNOWN,
    AcceptedSizes,
    Document,
    FleetStatement,
    Recount,
    Shown,
    archived_release,
    canonical_bytes,
    cohort_of,
    release,
    why_no_recount,
)
from hubbub_aggregator.runners import RoundReports
from hubbub_aggregator.stores import (
    TRANSPARENCY_FILE,
    RecountFolder,
    SqliteArchive,
    TransparencyLog,
    enter,
)
from hubbub_deploy.commands.replay.log_count import States, counted, gone_rounds
from hubbub_deploy.errors import DeployError
from hubbub_deploy.files import ARCHIVE_FILE, load_survey, refuse_unwritable, writing
from hubbub_deploy.node import LOG_FILE
from hubbub_lab import texts
from hubbub_lab.evaluation import print_json
from hubbub_topic import SqliteLog

if TYPE_CHECKING:
    from hubbub_topic.kafka import Brokers


def publish(
    recounts: Mapping[RoundKey, bytes],
    released: Mapping[RoundKey, bytes],
    shown: Mapping[RoundKey, Shown],
    *,
    surveys: Mapping[bytes, Survey],
    folder: Path,
    say: Callable[[str], object],
) -> None:
    """Put recounts beside the releases that they are recounts of, and say which and which not.

    A round is left out where the archive has no release of it, or none of the issuers vouched for a report of
    it. So is one whose recount is against the rule of `hubbub_aggregator.release.disclosure`: whoever reads
    everything that was published of a round has all its differences.

    Args:
        recounts: The recounts.
        released: The archived releases that are whole.
        shown: What was shown of rounds before their release, as the archive has it.
        surveys: The surveys, by digest.
        folder: The folder of the node or dashboard.
        say: Told a line for every round that reports were left out of.

    Raises:
        DeployError: If a recount cannot be written, another one is there, or none is of use.
    """
    kept, published = RecountFolder(folder), 0
    for key in sorted(recounts.keys() & released.keys()):
        recount, release = json.loads(recounts[key]), json.loads(released[key])
        vouched = {line["issuer"]: line["accepted"] for line in release.get("issuers", ())}
        asked = _recount(recount)
        if not vouched.keys() & (asked.without | {OTHERS}):
            continue
        name = f"survey {surveys[key[0]].id!r}, round {number_of_round(key[1])}"
        others = [each for each in map(_recount, kept.of_round(key)) if each.without != asked.without]
        why = why_no_recount(
            shown.get(key, UNKNOWN),
            AcceptedSizes(release["devices"], {}, vouched),
            [*others, asked],
            compared=[line["issuer"] for line in release["issuers"] if line["p_value"] is not None],
            cohort=cohort_of(surveys[key[0]]),
        )
        if why is not None:
            say(f"{name}: not published; {why}")
            continue
        try:
            path = kept.put(recount)
            without = hash_of(json.dumps(recount["recount"]["without_issuers"]).encode())
            fields = (key[0], recount["round"], without, hash_of(recounts[key]))
            enter(folder, [Entry("recount", fields)])
        except AggregatorError as error:
            raise DeployError(str(error)) from error
        say(f"{name}: published as {path}")
        published += 1
    if not published:
        raise DeployError(f"{folder}: nothing is published; no release there can be recounted so")


def _recount(document: Document) -> Recount:
    return Recount(frozenset(document["recount"]["without_issuers"]), document["devices"])


TOLD_RECORDS: Final = 10_000
"""Records between two words on how far the counting is: some seconds."""

# Stands for a release whose checksum does not hold: no release is empty.
DAMAGED: Final = b""
DIFFERS: Final = "differs"


@dataclass(frozen=True, slots=True, kw_only=True)
class LogReplaySettings:
    """The settings of a log's replay.

    Attributes:
        source: A node's folder, or kafka://host:port/topic (several brokers:
            kafka://host:port,host:port/topic).
        surveys: Only these surveys are released; none given, all that the log has announced.
        archive: Folder of an archive to compare with; None compares a node's folder with its own, if any.
        out: Folder for the releases, one file each; None writes none.
        output: Table for people, JSON for programs.
        without: Issuers whose reports are left out; every release then says so, and no archive is compared.
        publish: Put recounts without issuers beside the archive, where page and API find them.
        brokers: How the topic's brokers are reached, where they ask for more than an address.
        seal_rules: Which seals are the sealer's; None where all are.
    """

    source: str
    surveys: tuple[Path, ...] = ()
    archive: Path | None = None
    out: Path | None = None
    output: str = "table"
    without: tuple[str, ...] = ()
    publish: bool = False
    brokers: Brokers | None = None
    seal_rules: SealRules | None = None


def run(settings: LogReplaySettings) -> int:
    """Replay the log and print one line per sealed round; 1 if the archive holds anything else, else 0.

    It is 1, too, where anything in the archive is damaged, whichever round it is of.

    Raises:
        SurveyError: If a survey cannot be compiled.
        DeployError: If the log or the archive cannot be read, a release is of another method, or
            the log has no such survey.
    """
    if settings.out is not None:
        refuse_unwritable(settings.out, kind="folder")
    began = time.perf_counter()
    talk = texts.talk()
    states, partition_map = counted(
        settings.source,
        _progress(talk),
        without=settings.without,
        brokers=settings.brokers,
        seal_rules=settings.seal_rules,
    )
    surveys = _chosen(states, settings)
    kept, shown, damage = _archived(settings, _keys(states, surveys))
    released = {key: data for key, data in kept.items() if data}
    asked = {key: _asked(key, data) for key, data in released.items()}
    gone = gone_rounds(settings.source)
    # Releases of which a damaged archive does not say what was shown compare every issuer.
    compared = None if settings.without else {key: shown.get(key) for key in released}
    whole = releases(states, surveys, partition_map, shown=compared, asked=asked)
    found = {key: data for key, data in whole.items() if key not in gone}
    if settings.without:
        found = {key: _labelled(data, settings.without) for key, data in found.items()}
        _refuse_unknown(states, settings)
    seconds = time.perf_counter() - began
    archived = {} if settings.without else {key: data for key, data in kept.items() if key in found}
    records = sum(state.offset for state in states.values())
    rounds = "1 sealed round" if len(found) == 1 else f"{len(found)} sealed rounds"
    talk.print(f"{records:,} records, {rounds} in {seconds:.2f} s")
    for digest, number in sorted(gone):
        name = repr(surveys[digest].id) if digest in surveys else digest.hex()
        name = f"survey {name}, round {number_of_round(number)}"
        talk.print(f"{name}: its records are gone by retention, it is not compared")
    if settings.out is not None:
        counts = {} if settings.without else _public(found, states, surveys, partition_map)
        _write(found, surveys, settings, talk, counts)
    if settings.publish:
        folder = settings.archive or Path(settings.source)
        publish(found, released, shown, surveys=surveys, folder=folder, say=talk.print)
    if settings.output == "json":
        print_json([json.loads(data) for data in found.values()])
    else:
        texts.results().print(_table(found, surveys, archived))
    differing = [
        key for key, kept in archived.items() if kept is not None and _verdict(kept, found[key]) == DIFFERS
    ]
    for digest, number in differing:
        holds = "a damaged release" if archived[digest, number] == DAMAGED else "another release"
        name = f"survey {surveys[digest].id!r}, round {number_of_round(number)}"
        talk.print(f"{name}: the archive holds {holds}")
    if damage:
        talk.print(damage, markup=False)
    unlisted = [] if settings.without else list(_other_lists(found, settings, surveys))
    for line in unlisted:
        talk.print(line, markup=False)
    return 1 if differing or damage or unlisted else 0


def _other_lists(
    found: Mapping[RoundKey, bytes], settings: LogReplaySettings, surveys: Mapping[bytes, Survey]
) -> Iterator[str]:
    """Yield the rounds of a node's folder of which its log of what was published lists other answers."""
    folder = Path(settings.source)
    if not (folder / TRANSPARENCY_FILE).is_file():
        return
    with contextlib.closing(TransparencyLog(folder / TRANSPARENCY_FILE)) as entries:
        listed = {each.fields[:2]: each for each in entries.since(0) if each.kind == "counted"}
    with SqliteLog(folder / LOG_FILE, partitions=None) as log:
        reports = RoundReports(lambda: contextlib.nullcontext(log))
        for (digest, index), data in found.items():
            entry = listed.get((digest, number_of_round(index)))
            made = None if entry is None else reports.counted(json.loads(data))
            if made is not None and made.entry != entry:
                name = f"survey {surveys[digest].id!r}, round {number_of_round(index)}"
                yield f"{name}: the log of what was published lists other answers"


def _progress(talk: Console) -> Callable[[int, int], None]:
    """Return a listener that says every TOLD_RECORDS records how far the counting is."""
    told = 0

    def tell(done: int, records: int) -> None:
        nonlocal told
        if done // TOLD_RECORDS > told // TOLD_RECORDS:
            talk.print(f"{done:,} of {records:,} records counted")
            told = done

    return tell


def _asked(key: RoundKey, data: bytes) -> int | None:
    """Return the devices asked that an archived release states, or None."""
    try:
        stated = (archived_release(key, data)["enrolment"] or {}).get("asked")
    except ArchiveError as error:
        raise DeployError(str(error)) from error
    return stated if type(stated) is int and stated >= 1 else None


def _keys(states: States, surveys: Mapping[bytes, Survey]) -> list[RoundKey]:
    """Return the rounds that anything is known of, in order."""
    # A seal that precedes its survey may be of a round that there is not.
    return sorted(
        {
            key
            for state in states.values()
            for key in state.rounds
            if key[0] in surveys and key[1] < surveys[key[0]].rounds
        }
    )


def releases(
    states: States,
    surveys: Mapping[bytes, Survey],
    partition_map: PartitionMap,
    *,
    shown: Mapping[RoundKey, Shown | None] | None = None,
    asked: Mapping[RoundKey, int | None] | None = None,
) -> dict[RoundKey, bytes]:
    """Return the canonical bytes of the release of every round that all its partitions have sealed, in order.

    Args:
        states: Every partition of the log.
        surveys: The surveys to release, by digest.
        partition_map: Which partitions a round's reports lie in.
        shown: What was shown of rounds before their release, which says which issuers it compares: all of
            them where it is None, none of a round that is not here.
        asked: How many devices were asked, as archived releases state; intervals of the crowd depend on it.
    """
    keys = _keys(states, surveys)
    estimators = {digest: survey.estimator() for digest, survey in surveys.items()}
    found: dict[RoundKey, bytes] = {}
    most = dict.fromkeys(surveys, 0)
    for digest, number in keys:
        survey = surveys[digest]
        home = partition_map.partitions_at(survey.round_start_s(number))
        finished = release(survey, number, {partition: states[partition] for partition in home})
        if finished is not None:
            counted = finished.tally.n
            most[digest] = max(most[digest], counted)
            stated = (asked or {}).get((digest, number))
            fleet = FleetStatement({} if stated is None else {"": stated})
            enrolment = fleet.of(survey, counted=counted, enrolled=most[digest])
            before = (shown or {}).get((digest, number), UNKNOWN)
            made = replace(finished, enrolment=enrolment)
            made = replace(made, compared=frozenset(made.issuers)) if before is None else made.beside(before)
            document = made.document(estimators[digest])
            found[digest, number] = canonical_bytes(document)
    return found


def _public(
    found: Iterable[RoundKey],
    states: States,
    surveys: Mapping[bytes, Survey],
    partition_map: PartitionMap,
) -> dict[RoundKey, bytes]:
    """Return the bytes of the public counts of rounds that have any."""
    counts = {}
    for digest, number in found:
        survey = surveys[digest]
        home = partition_map.partitions_at(survey.round_start_s(number))
        finished = release(survey, number, {partition: states[partition] for partition in home})
        public = None if finished is None else finished.public_counts()
        if public is not None:
            counts[digest, number] = encode_counts(public)
    return counts


def _verdict(kept: bytes, found: bytes) -> str:
    """Return how an archived release and a new one agree, but for what is stated about the fleet."""
    if kept == DAMAGED:
        return DIFFERS
    said, again = ({**json.loads(data), "enrolment": None} for data in (kept, found))
    if canonical_bytes(said) == canonical_bytes(again):
        return "the same bytes"
    compare(checked := Checked(), "", said, again)
    return DIFFERS if checked.differences else "the same numbers"


def _labelled(data: bytes, without: Iterable[str]) -> bytes:
    """Return a release that says which issuers it leaves out; its bytes are never those of a sealed one."""
    # Counts beside those of the release would be the counts of the issuers.
    recount = {"counts": None, "recount": {"without_issuers": sorted(without)}}
    return canonical_bytes(json.loads(data) | recount)


def _refuse_unknown(states: States, settings: LogReplaySettings) -> None:
    """Refuse to leave out issuers that vouched for nothing: a name misspelt would leave all in."""
    full, _ = counted(settings.source, brokers=settings.brokers)
    known = {name for state in full.values() for round_ in state.rounds.values() for name in round_.issuers}
    if OTHERS not in known and (unknown := sorted(set(settings.without) - known)):
        raise DeployError(f"{settings.source}: no report of issuer {', '.join(unknown)} is in it")


def _chosen(states: States, settings: LogReplaySettings) -> dict[bytes, Survey]:
    known = {digest: survey for state in states.values() for digest, survey in state.surveys.items()}
    if not settings.surveys:
        return known
    chosen = {}
    for path in settings.surveys:
        survey = load_survey(path)
        if survey.digest not in known:
            raise DeployError(f"{path}: {settings.source} must hold this survey, got none of its digest")
        chosen[survey.digest] = survey
    return chosen


def _archived(
    settings: LogReplaySettings, keys: Sequence[RoundKey]
) -> tuple[dict[RoundKey, bytes | None], dict[RoundKey, Shown], str]:
    """Return what an archive has of rounds, None where it has nothing; what they showed; how it is damaged.

    All are empty without an archive.
    """
    folder = settings.archive
    if folder is None and (Path(settings.source) / ARCHIVE_FILE).exists():
        folder = Path(settings.source)
    if folder is None:
        return {}, {}, ""
    if not (folder / ARCHIVE_FILE).exists():
        raise DeployError(f"{folder}: {ARCHIVE_FILE} must be there to be compared with, got none")
    try:
        with contextlib.closing(SqliteArchive(folder / ARCHIVE_FILE)) as archive:
            found = {key: _kept(archive, key) for key in keys}
            try:
                archive.check()
            except ArchiveError as error:
                return found, {}, str(error)
            shown = {key: archive.shown(key) for key in keys}
            return found, {key: Shown.decode(data) for key, data in shown.items() if data is not None}, ""
    except AggregatorError as error:
        raise DeployError(str(error)) from error


def _kept(archive: SqliteArchive, key: RoundKey) -> bytes | None:
    """Return what an archive holds of a round, or DAMAGED."""
    try:
        return archive.get(key)
    except ArchiveError:
        return DAMAGED


def _table(
    found: Mapping[RoundKey, bytes],
    surveys: Mapping[bytes, Survey],
    archived: Mapping[RoundKey, bytes | None],
) -> Table:
    table = Table("survey", "round", "devices", "attempts", "archive")
    for (digest, number), data in found.items():
        document, survey = json.loads(data), surveys[digest]
        if (digest, number) not in archived:
            said = Text("")
        elif (kept := archived[digest, number]) is None:
            said = Text("absent")
        elif kept == DAMAGED:
            said = Text("damaged", "bold red")
        else:
            verdict = _verdict(kept, data)
            said = Text(verdict, "bold red" if verdict == DIFFERS else "")
        devices, attempts = document["devices"], document["accounting"]["attempts"]
        table.add_row(
            f"{survey.id} v{survey.version}",
            str(document["round"]),
            f"{devices:,}",
            f"{attempts:,}",
            said,
        )
    return table


def _write(
    found: Mapping[RoundKey, bytes],
    surveys: Mapping[bytes, Survey],
    settings: LogReplaySettings,
    talk: Console,
    counts: Mapping[RoundKey, bytes],
) -> None:
    folder = settings.out
    assert folder is not None  # noqa: S101 - the caller looked
    label = "".join(f"-without-{re.sub(r'[^A-Za-z0-9._-]', '-', name)}" for name in sorted(settings.without))
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        for name, data in _named(found, surveys):
            (folder / f"{name}{label}.json").write_bytes(data)
        for name, data in _named(counts, surveys):
            (folder / f"{name}.counts").write_bytes(data)
        for survey in {digest: surveys[digest] for digest, _ in counts}.values():
            (folder / f"{survey.id}-v{survey.version}.survey").write_bytes(survey.canonical)
    talk.print(f"wrote {len(found)} {'release' if len(found) == 1 else 'releases'} into {folder}")


def _named(found: Mapping[RoundKey, bytes], surveys: Mapping[bytes, Survey]) -> Iterator[tuple[str, bytes]]:
    for (digest, number), data in found.items():
        survey = surveys[digest]
        yield f"{survey.id}-v{survey.version}-round-{number_of_round(number)}-of-{survey.rounds}", data
