"""From counts to what readers see: seal rounds that are due, release those that are sealed, show the rest.

One part for every process that publishes: the embedded worker gives it a counter that applies the log's
records, the dashboard one that reads what others have saved.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import NotRequired, TypedDict, Unpack

from hubbub.estimation import AlertRules
from hubbub.survey import AnyEstimator, Survey, number_of_round, step_of
from hubbub.transparency import Entry, hash_of, survey_entry
from hubbub.wire import encode_counts
from hubbub_aggregator.counting.partition import RoundKey, RoundState
from hubbub_aggregator.counting.seals import SignSeal
from hubbub_aggregator.counting.skip_offsets import lost_of
from hubbub_aggregator.counting.verdict_counts import NOTHING
from hubbub_aggregator.errors import (
    ArchiveError,
    ClockDoubtError,
    CorruptStoreError,
    DivergedError,
    StoreConflictError,
)
from hubbub_aggregator.release.after_shuffling import ShufflingStatements
from hubbub_aggregator.release.disclosure import (
    UNKNOWN,
    AcceptedSizes,
    Shown,
    cohort_of,
    without_small,
)
from hubbub_aggregator.release.enrolment import FleetStatement
from hubbub_aggregator.release.issuers import accepted_by, issuer_lines, issuers_of
from hubbub_aggregator.release.judgement import ReleaseJudge, SurveyAlerts
from hubbub_aggregator.release.provisional import AcceptedCounts, PublicationGate, advance
from hubbub_aggregator.release.round_release import (
    Document,
    Release,
    archived_release,
    canonical_bytes,
    release,
    same_facts,
    sealed_hash,
    sum_counts,
)
from hubbub_aggregator.release.sealing import DEFAULT_GRACE_S, Sealer, due
from hubbub_aggregator.release.watched import NOTHING_SO_FAR, SoFar, with_bands
from hubbub_aggregator.runners.counters import CountSource
from hubbub_aggregator.stores.archive import SURVEY_ROW, Archive
from hubbub_aggregator.stores.store import GateStore
from hubbub_aggregator.stores.transparency import TransparencyLog
from hubbub_aggregator.web.view import LiveView, compose
from hubbub_topic import Log

_LOG = logging.getLogger("hubbub.aggregator")


class Publishing(TypedDict):
    """The options of a process that publishes, whatever it counts.

    Attributes:
        archive: Where releases go.
        view: Where readers look.
        grace_s: How long after a round's lateness its seal waits, seconds; see `sealing`.
        clock: Seconds since 1970; it decides when rounds are sealed and nothing else. While it raises
            ClockDoubtError nothing is sealed, and the view says why.
        fleet: What the operator states about the devices asked; None states nothing.
        alerts: The thresholds of alerts on releases; None for the usual ones.
        sign: Signs seals; without it they are not signed.
        entries: The log of what was published; None for none.
    """

    archive: Archive
    view: LiveView
    grace_s: NotRequired[float]
    clock: NotRequired[Callable[[], float]]
    fleet: NotRequired[FleetStatement | None]
    alerts: NotRequired[AlertRules | None]
    sign: NotRequired[SignSeal | None]
    entries: NotRequired[TransparencyLog | None]


class Publication:
    """The rounds of one log on their way to readers, by the counts of one counter.

    Args:
        log: The log that is counted; seals are appended to it.
        counter: The source of the counts.
        gates: Where the publication gates of open rounds are kept.
        **publishing: See `Publishing`.

    Raises:
        ArchiveError: If the store let go of counts whose release is not in this archive.
        DivergedError: If the archive holds a release of other facts for a round that is counted anew.
    """

    def __init__(
        self,
        log: Log,
        counter: CountSource,
        *,
        gates: GateStore,
        **publishing: Unpack[Publishing],
    ) -> None:
        self._log, self._counter, self._gate_store = log, counter, gates
        archive, self._view = publishing["archive"], publishing["view"]
        self._archive = archive
        self._entries, self._entered = publishing.get("entries"), set[object]()
        self._grace_s = publishing.get("grace_s", DEFAULT_GRACE_S)
        self._clock = publishing.get("clock", time.time)
        self._sealer = Sealer(log, self._target_partitions, sign=publishing.get("sign"))
        self._fleet = publishing.get("fleet") or FleetStatement()
        self._estimators: dict[bytes, AnyEstimator] = {}
        self._gates: dict[RoundKey, PublicationGate] = gates.load_gates()
        # The cuts shown of open rounds, as far as they were looked at.
        self._shown: dict[RoundKey, Shown] = {}
        # Released rounds are looked at no more, however many there have been.
        self._released: dict[RoundKey, Document] = {}
        self._counts: dict[RoundKey, bytes] = {}
        self._shuffling = ShufflingStatements()
        self._judge = ReleaseJudge(publishing.get("alerts") or AlertRules())
        self._alerts: dict[bytes, SurveyAlerts] = {}
        self._so_far: dict[bytes, SoFar] = {}
        # The most reports of any round released, by digest.
        self._most: dict[bytes, int] = {}
        self._open = {
            key
            for state in counter.states.values()
            for key, known in state.rounds.items()
            if _is_answered(known)
        }
        # The views of open rounds, and the rounds that may show something else by now.
        self._provisional: dict[RoundKey, Document] = {}
        self._changed = set(self._open)
        self._ends: dict[int, int] = {}
        # A seal that was applied before the last stop may wait for its release.
        self._sealing = {
            key
            for state in counter.states.values()
            for key, known in state.rounds.items()
            if known.sealed_at is not None
        }
        self._load_released()
        # Of an archive that is new beside rounds sealed already, or was lost, nobody knows what they showed.
        archive.begin({key: UNKNOWN.encode() for key in self._sealing})
        self.release_and_show()

    def _load_released(self) -> None:
        """Take over what the archive has of sealed rounds.

        Raises:
            ArchiveError: If it lacks the release of a round whose counts the store let go of, or has one
                of another method.
        """
        surveys = self._surveys()
        for key in sorted(self._sealing):
            data = self._archive.get(key)
            if data is not None:
                self._released[key] = self._final(archived_release(key, data), surveys.get(key[0]))
                accepted = self._released[key]["accounting"]["accepted"]
                self._most[key[0]] = max(self._most.get(key[0], 0), accepted)
        self._keep_counts(self._released)
        self._judge_releases(self._released)
        self._sealing -= self._released.keys()
        self._open -= self._released.keys()
        for partition, state in self._counter.states.items():
            for (digest, number), known in state.rounds.items():
                if known.is_archived and (digest, number) not in self._released:
                    raise ArchiveError(
                        f"survey {digest.hex()}, round {number_of_round(number)}, partition {partition}: its "
                        "counts were let go of because an archive has its release; this one must be it, and "
                        "has none: start with the folder that has it, or with its backup"
                    )
        self._free_archived(self._released)
        self._forget_gates(self._gates.keys() & self._released.keys())

    def advance(self) -> int:
        """Bring the counter forward in every partition, and return how many records were applied."""
        return sum(map(self._advance, self._counter.states))

    def _advance(self, partition: int) -> int:
        found = self._counter.advance(partition)
        if found is None:
            return 0
        if found.lost:
            self._sealer.forget()
        self._mark_changed(found.rounds)
        return found.records

    def release_and_show(self) -> None:
        """Release every round that all its partitions have sealed, and show everything as it is now."""
        self._release()
        if self._entries is not None:
            self._enter(self._entries)
        self._show()

    @property
    def has_other_ends(self) -> bool:
        """True if the log's ends moved since they were shown; while nobody counts, nothing else tells it."""
        return any(self._log.end(number) != end for number, end in self._ends.items())

    def seal(self, keys: Iterable[RoundKey]) -> None:
        """Seal rounds before their time, for a host that knows that nothing more will come."""
        self._sealer.seal(keys)

    def _mark_changed(self, rounds: Mapping[RoundKey, RoundState]) -> None:
        """Note which of the rounds that have changed are answered, and which a partition has sealed."""
        for key, known in rounds.items():
            if key not in self._released and _is_answered(known):
                self._open.add(key)
                self._changed.add(key)
                if known.sealed_at is not None:
                    self._sealing.add(key)

    def seal_due(self) -> None:
        """Seal the rounds that are due; none while clocks differ, and the view then says why."""
        try:
            now_s = self._clock()
        except ClockDoubtError as doubt:
            if self._view.unsealed is None:
                _LOG.warning("%s", doubt)
            self._view.unsealed = str(doubt)
            return
        if self._view.unsealed is not None:
            _LOG.warning("clocks agree, and rounds are sealed again")
            self._view.unsealed = None
        self._sealer.seal(due(self._open, self._surveys(), now_s, self._grace_s))

    def _target_partitions(self, key: RoundKey) -> range:
        """Return the partitions that a round's reports lie in.

        All of them as long as nobody knows its survey.
        """
        for state in self._counter.states.values():
            survey = state.surveys.get(key[0])
            if survey is not None:
                return self._log.partition_map.partitions_at(survey.round_start_s(key[1]))
        return range(self._log.partitions)

    def _surveys(self) -> dict[bytes, Survey]:
        return {
            digest: survey
            for state in self._counter.states.values()
            for digest, survey in state.surveys.items()
        }

    def _estimator(self, survey: Survey) -> AnyEstimator:
        if survey.digest not in self._estimators:
            self._estimators[survey.digest] = survey.estimator()
        return self._estimators[survey.digest]

    def _release(self) -> None:
        """Archive every round whose last seal was just applied, many at the price of one."""
        if not self._sealing:
            return
        surveys = self._surveys()
        done: dict[RoundKey, Document] = {}
        with self._archive.together():
            for key in sorted(self._sealing):
                if key[0] in surveys and key[1] < surveys[key[0]].rounds:
                    document = self._archived(key, surveys[key[0]])
                    if document is not None:
                        done[key] = document
        # A round that a partition has yet to seal is looked at again when it does.
        self._sealing = {key for key in self._sealing if key[0] not in surveys}
        self._forget_gates(self._gates.keys() & done.keys())
        for key, document in done.items():
            self._provisional.pop(key, None)
            self._released[key] = self._final(document, surveys[key[0]])
            self._open.discard(key)
        self._keep_counts(done)
        self._judge_releases(done)
        self._free_archived(done)

    def _keep_counts(self, keys: Iterable[RoundKey]) -> None:
        """Keep the public counts of releases at hand: they take a hundredth of what the releases take."""
        for key in keys:
            if (data := self._archive.counts(key)) is not None:
                self._counts[key] = data

    def _judge_releases(self, keys: Iterable[RoundKey]) -> None:
        """Judge releases by their surveys; those of a survey that nobody announced are left out."""
        new: dict[bytes, set[int]] = {}
        for digest, number in keys:
            new.setdefault(digest, set()).add(number)
        surveys = self._surveys()
        for digest in new.keys() & surveys.keys():
            survey = surveys[digest]
            if digest not in self._alerts:
                estimator = self._estimator(survey)
                self._alerts[digest] = SurveyAlerts(self._judge, survey, estimator)
                self._so_far[digest] = SoFar(survey, self._judge.noise_of(survey, estimator))
            releases = {number: found for (each, number), found in self._released.items() if each == digest}
            self._alerts[digest].update(releases, new[digest])
            self._so_far[digest].update(releases)

    def _archived(self, key: RoundKey, survey: Survey) -> Document | None:
        """Return a round's release as the archive keeps it, or None while a partition has no seal.

        Raises:
            DivergedError: If the archive has another.
            ArchiveError: If that is of another method.
        """
        digest, number = key
        states = {partition: self._counter.states[partition] for partition in self._target_partitions(key)}
        finished = release(survey, number, states)
        if finished is None:
            return None
        most = max(self._most.get(digest, 0), finished.tally.n)
        enrolment = self._fleet.of(survey, counted=finished.tally.n, enrolled=most)
        shown = self._shown_of(key)
        if (gate := self._gates.get(key)) is not None:
            shown = shown.until(0 if gate.published is None else gate.published.n)
        document = replace(finished, enrolment=enrolment).beside(shown).document(self._estimator(survey))
        public = finished.public_counts()
        archived = self._archive.get(key)
        if archived is None:
            self._archive.keep_shown(key, shown.encode())
            self._archive.put(key, canonical_bytes(document))
            if public is not None:
                self._archive.keep_counts(key, encode_counts(public))
                self._archive.keep_counts((digest, SURVEY_ROW), survey.canonical)
        else:
            # Counted anew, from a log whose store was lost: what was released stands as it was rendered, and
            # where records were lost since, it is of more.
            kept = archived_release(key, archived)
            if not finished.lost and not same_facts(document, kept):
                raise DivergedError(
                    f"survey {digest.hex()}, round {number_of_round(number)}: another release is archived "
                    "already"
                )
            document = kept
        self._most[digest] = max(self._most.get(digest, 0), document["accounting"]["accepted"])
        return document

    def _enter(self, entries: TransparencyLog) -> None:
        """Append to the log what this process has not: after a kill everything, which is there once."""
        identity = hash_of(self._log.identity.encode())
        published: dict[object, Entry] = {
            period: Entry(
                "layout", (identity, period.from_s, hash_of(period.identity.encode()), period.partitions)
            )
            for period in self._log.partition_map.periods
            if period not in self._entered
        }
        surveys = self._surveys()
        for digest in sorted(surveys.keys() - self._entered):
            published[digest] = survey_entry(surveys[digest].canonical)
        for key in sorted(self._released.keys() - self._entered):
            digest, number = key
            sealed = sealed_hash(self._released[key])
            published[key] = Entry("release", (digest, number_of_round(number), sealed))
        if published:
            entries.append(published.values())
            self._entered.update(published)

    def _free_archived(self, keys: Iterable[RoundKey]) -> None:
        for key in keys:
            for partition in self._target_partitions(key):
                self._counter.free(key, partition)

    def _shown_of(self, key: RoundKey) -> Shown:
        """Return what was shown of a round, or that it is not known: its gate has shown what is not kept."""
        if key not in self._shown:
            kept, gate = self._archive.shown(key), self._gates.get(key)
            found = Shown() if kept is None else Shown.decode(kept)
            last = None if gate is None else gate.published
            if last is not None and not found.holds(last.n, last.cut):
                found = UNKNOWN
                self._archive.keep_shown(key, found.encode())
            self._shown[key] = found
        return self._shown[key]

    def _save_gates(self, changed: Mapping[RoundKey, PublicationGate | None]) -> None:
        try:
            self._gate_store.save_gates(changed)
        except CorruptStoreError as error:
            # Of a store that came back older, or empty, it is no loss; a new publisher begins from it.
            if self._counter.has_gone_back():
                raise StoreConflictError(f"the store came back older; {error}") from error
            raise

    def _forget_gates(self, keys: Iterable[RoundKey]) -> None:
        """Drop the publication gates of released rounds."""
        forgotten: dict[RoundKey, PublicationGate | None] = dict.fromkeys(keys)
        self._save_gates(forgotten)
        for key in forgotten:
            del self._gates[key]
            self._shown.pop(key, None)

    def _show(self) -> None:
        """Move the publication gates of open rounds that have changed, and publish everything."""
        surveys = self._surveys()
        changed: dict[RoundKey, PublicationGate | None] = {}
        shown: dict[RoundKey, Shown] = {}
        self._changed &= self._open
        for key in sorted(self._changed):
            digest, number = key
            if digest not in surveys:
                continue
            self._changed.remove(key)
            if number >= surveys[digest].rounds:
                # Sealed before the survey was announced: nothing of it can be counted, nor dated.
                self._open.discard(key)
                continue
            parts = [state.rounds[key] for state in self._counter.states.values() if key in state.rounds]
            accounting = sum((part.verdicts for part in parts), NOTHING)
            gate = known = self._gates.get(key)
            if all(part.sealed_at is None for part in parts):
                # From the first seal on nothing moves until the release.
                cut = {partition: state.offset for partition, state in self._counter.states.items()}
                survey = surveys[digest]
                now = AcceptedCounts(cut, sum_counts(part.counts for part in parts), accounting.accepted)
                before = self._shown_of(key)
                gate = advance(known, now, shown=before, step=step_of(survey))
                if gate is not None and gate is not known:
                    shown[key] = before.add(AcceptedSizes(now.n, now.cut, accepted_by(issuers_of(parts))))
                    self._gates[key] = changed[key] = gate
            document = self._provisional.get(key)
            if document is None or gate is not known:
                document = self._provisional_document(surveys[digest], number, gate)
            self._provisional[key] = document | {
                "accounting": accounting.as_dict(),
                "lost": lost_of(surveys[digest], number, self._counter.states),
            }
            if issuers := issuers_of(parts):
                self._provisional[key]["issuers"] = issuer_lines(issuers)
        # Kept before they are seen, and before a gate says so: after a crash nothing was shown that is not
        # known, and the next step is still a cohort away.
        if shown:
            with self._archive.together():
                for key, found in shown.items():
                    self._archive.keep_shown(key, found.encode())
            self._shown |= shown
        self._save_gates(changed)
        self._ends = {partition: self._log.end(partition) for partition in self._counter.states}
        rounds = self._released | self._provisional
        alerts = dict.fromkeys(surveys, self._judge.document([]))
        alerts |= {digest: found.document() for digest, found in self._alerts.items()}
        so_far = dict.fromkeys(surveys, NOTHING_SO_FAR)
        so_far |= {digest: found.document() for digest, found in self._so_far.items()}
        self._view.show_blobs(
            self._counts | {(digest, SURVEY_ROW): survey.canonical for digest, survey in surveys.items()}
        )
        self._view.publish(
            compose(
                self._log.identity,
                self._counter.states,
                self._ends,
                rounds,
                self._counter.total,
                alerts=alerts,
                so_far=so_far,
            )
        )

    def _provisional_document(self, survey: Survey, number: int, gate: PublicationGate | None) -> Document:
        shown = gate.published if gate is not None else None
        tally = shown or AcceptedCounts({}, sum_counts(()), 0)
        provisional = Release(survey, number, "provisional", tally, NOTHING)
        estimator = self._estimator(survey)
        document = provisional.document(estimator)
        document = with_bands(document, survey, self._judge.noise_of(survey, estimator))
        return _shown(document) | {"after_shuffling": None}

    def _final(self, document: Document, survey: Survey | None) -> Document:
        """Return a release as it is shown: what is said beside it is no part of its bytes."""
        cohort = None if survey is None else cohort_of(survey)
        return _shown(without_small(document, cohort)) | {
            "after_shuffling": self._shuffling.of(survey, document)
        }


def _is_answered(known: RoundState) -> bool:
    """Return whether there is something to release.

    Refusals alone, which anybody can cause, open no round.
    """
    return known.verdicts.accepted > 0 or known.sealed_at is not None


def _shown(document: Document) -> Document:
    """Return the document with the number of devices that its estimates rest on, 0 where there are none."""
    return document | {"as_of": 0 if document["suppressed"] else document["devices"]}
