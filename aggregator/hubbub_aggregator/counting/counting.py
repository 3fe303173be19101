"""From log records to counts: pure, vectorised, one verdict per report.

`apply_many` reads a partition's state and records and returns the change that they make;
`PartitionState.commit` makes it. Nothing else decides what counts, so that live, embedded and replayed runs
agree to the integer.

Each report gets the first verdict that fits, in this order:

    invalid     its symbol is not one of the channel's, its round not one of the schedule's, or not of this
                partition's
    early       its round starts later than its batch's minute allows: start > 60 (minute + 1) + skew
    late        its round is sealed
    duplicate   its id was accepted before in the open round
    over quota  the partition has accepted its share of the survey's quota for this round: quota // P of P
                partitions, and one more in those below quota mod P; or so many of the report's issuer
    accepted    it counts

Only accepted ids are remembered. What the gateway refused comes as tallies beside the reports, with the
same names. Rounds outside the schedule are kept under NO_ROUND; reports of a digest that no survey record
has announced make up `unknown`; records that do not decode, whole or in some segments, are `dead`, and so
are seals of such digests beyond MOST_UNKNOWN_SEALS. All of these are counted and skipped, and the sound
segments of a record count whatever lies beside them. An offset below the next expected one is a redelivery
and dropped; one above it is a GapError.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hubbub.channels import Channel
from hubbub.errors import HubbubError
from hubbub.survey import Survey
from hubbub.wire import ID_BYTES, NO_ROUND, ReportsRecord, SealRecord, Segment, SurveyRecord, decode_record
from hubbub_aggregator.counting.dead_letters import DeadLetter, Reason
from hubbub_aggregator.counting.dedup import keys_of
from hubbub_aggregator.counting.issuers import IssuerTally, tallies_of, vouched_by
from hubbub_aggregator.counting.partition import (
    NO_COUNTS,
    Change,
    Counts,
    PartitionState,
    RoundChange,
    RoundKey,
    RoundState,
)
from hubbub_aggregator.counting.quotas import within_quota, within_quotas
from hubbub_aggregator.counting.verdict_counts import NOTHING, VerdictCounts
from hubbub_aggregator.errors import AheadError, GapError

# More than the bytes of a group of a MiB, decoded, joined and looked up.
_KEPT_BYTES: Final = 1 << 24

LOOK_BACK: Final = 64
"""The records before a stored offset that are read once more at a start: one read, some 20,000 reports."""

MOST_UNKNOWN_SEALS: Final = 1000
"""The most seals of surveys that nobody announced yet that a partition keeps: whatever writes a log without a
key could write any number, and each stays."""

_ID: Final = np.dtype((np.void, ID_BYTES))
# Only ever read.
_UNKNOWN_ROUND: Final = RoundState()


def apply(state: PartitionState, offset: int, record: bytes) -> Change:
    """Return the change that one record makes, read from `state` and the record alone; `state` stays.

    Args:
        state: The partition so far.
        offset: The record's offset.
        record: Its bytes.

    Raises:
        GapError: If the offset is past the next expected one.
    """
    return apply_many(state, [(offset, record)])


def apply_many(
    state: PartitionState, records: Iterable[tuple[int, bytes]], *, most_rounds: int | None = None
) -> Change:
    """Return the change that records make one after another; `state` is left as it is.

    How records are split into groups makes no difference to what is counted; groups of tens of thousands of
    reports are the quickest.

    Args:
        state: The partition so far.
        records: (offset, bytes) in the order of the log.
        most_rounds: The change ends behind the record with which it touches so many rounds, so that a store
            is not stopped by one save; without it, behind the last.

    Raises:
        GapError: If an offset is past the next expected one.
    """
    draft = _Draft(state)
    offset = state.offset
    for found, data in records:
        if found < offset:
            continue
        if found > offset:
            raise GapError(f"next offset must be {offset}, got {found}")
        draft.take(offset, data)
        offset += 1
        if most_rounds is not None and draft.rounds >= most_rounds:
            break
    return draft.change(offset)


def first_to_check(state: PartitionState, begin: int) -> int:
    """Return the offset from which `check_counted` wants the records before the state's offset.

    Args:
        state: A partition as it was loaded.
        begin: The first offset that the log still has.
    """
    return max(begin, state.offset - LOOK_BACK, *(lost.end for lost in state.lost))


def check_counted(partition: int, state: PartitionState, records: Sequence[tuple[int, bytes]]) -> None:
    """Check that the records before a state's offset are those that were counted.

    A log that lost its end and has grown past the offset since holds others there, and their reports are in
    no count: applied to the state once more, records that were counted bring nothing new.

    Args:
        partition: The partition.
        state: Its state.
        records: (offset, bytes) from `first_to_check` up to the state's offset.

    Raises:
        AheadError: If more of them bring reports than failed to decode, and are not seen to fail here: of
            those a later release might read some.
    """
    fresh = unread = 0
    for kind, group in groupby((data for _, data in records), _kind_of):
        alike = list(group)
        if kind is SurveyRecord:  # reports before an announcement were unknown then
            fresh = 0
        elif kind is None:
            unread += len(alike)
        elif kind is ReportsRecord:
            change = apply_many(state, enumerate(alike, state.offset))
            unread += change.dead
            if _brings(change):
                fresh += sum(_brings(apply(state, state.offset, data)) for data in alike)
    if fresh > max(state.dead - unread, 0):
        raise AheadError(
            f"partition {partition}: the {len(records)} records before offset {state.offset} must be "
            f"counted, got {fresh} with reports that are not: the log was cut and has grown since, and only "
            "another namespace counts what is left of it"
        )


def _kind_of(data: bytes) -> type | None:
    try:
        return type(decode_record(data, broken=[]))
    except HubbubError:
        return None


def _brings(change: Change) -> bool:
    return any(new.verdicts.accepted for new in change.rounds.values())


def judged(
    state: PartitionState, key: RoundKey, records: Iterable[ReportsRecord]
) -> tuple[bytes, NDArray[np.unsignedinteger], NDArray[np.bool_], NDArray[np.bool_]]:
    """Return the ids and symbols of a round's reports, which of them count, and which a quota refuses.

    Invalid and early ones are left out. The change is committed; the offset stays.

    Args:
        state: The partition, as far as the round's reports were judged, and without its seal.
        key: The round.
        records: More records, of any rounds.
    """
    draft = _Draft(state)
    for record in records:
        segments = tuple(each for each in record.segments if (each.digest, each.round) == key)
        draft._reports(replace(record, segments=segments))
    change = draft.change(state.offset)
    new = change.rounds.get(key)
    if new is None or new.reports is None or new.fresh is None or new.seen is None:
        state.commit(change)
        return b"", np.empty(0, np.uint8), np.empty(0, np.bool_), np.empty(0, np.bool_)
    columns, symbols = new.reports
    ids = b"".join(columns)
    accepted = np.ones(len(symbols), np.bool_) if new.fresh.mask is None else new.fresh.mask
    over = ~accepted
    if over.any():
        over &= ~(new.seen.known(ids) | np.isin(keys_of(ids), new.fresh.keys))
    state.commit(change)
    return ids, symbols, accepted, over


def keep_freed_memory() -> None:
    """Have this process keep the memory that a group of records needed for the next group; once is enough.

    The C library would give it back to the system, and to have one page of it again can cost as much as to
    count hundreds of reports. glibc keeps twice what the largest block took that it ever got back: so here it
    gets one back. Nobody touched that, so it took no memory; with another library nothing happens.
    """
    np.empty(_KEPT_BYTES, dtype=np.uint8)


def count_symbols(symbols: NDArray[np.unsignedinteger], channel: Channel) -> Counts:
    """Return reports per bin, shape (bins,), of symbols that the channel can send."""
    return channel.tally(symbols)


@dataclass(slots=True)
class _RoundDraft:
    """The draft of one round's change: what a group of records holds for it, columns not yet counted.

    Attributes:
        known: The round before the group.
        verdicts: Verdict counts up to the seal, but of what waits.
        after_seal: Verdict counts after it.
        sealed_at: The seal's offset where the group holds the first one.
        waiting: Segments whose reports may count; their symbols were not looked at yet.
        open_from: The first minute whose batches are not early; known once a segment was looked at that its
            round's schedule and partition allow.
    """

    known: RoundState
    verdicts: VerdictCounts = NOTHING
    after_seal: VerdictCounts = NOTHING
    sealed_at: int | None = None
    waiting: list[Segment] = field(default_factory=list)
    open_from: float = float("inf")

    @property
    def is_sealed(self) -> bool:
        return self.sealed_at is not None or self.known.sealed_at is not None


class _Draft:
    """A collector of a group of records that counts each round's columns in one go.

    Columns may wait until the end: a seal stops further columns of its round, so no verdict changes.
    """

    def __init__(self, state: PartitionState) -> None:
        self._state = state
        self._surveys: dict[bytes, Survey] = {}
        self._rounds: dict[RoundKey, _RoundDraft] = {}
        self._unknown = 0
        self._dead: list[DeadLetter] = []
        # The sealed rounds of surveys that nobody announced; looked for where there is such a seal.
        self._strangers: set[RoundKey] | None = None

    @property
    def rounds(self) -> int:
        return len(self._rounds)

    def take(self, offset: int, data: bytes) -> None:
        broken: list[int] = []
        reason: Reason = "no record"
        try:
            record = decode_record(data, broken=broken)
            if isinstance(record, SurveyRecord):
                reason = "no survey"
                survey = Survey.from_canonical(record.canonical)
        except HubbubError:  # all that bad bytes raise; any other error is a bug and stops the worker
            self._dead.append(DeadLetter(offset, reason, record=data))
            return
        if isinstance(record, SurveyRecord):
            if self._survey(survey.digest) is None:
                self._surveys[survey.digest] = survey
                self._strangers = None
        elif isinstance(record, SealRecord):
            self._seal(offset, record, data)
        else:
            if broken:
                self._dead.append(DeadLetter(offset, "segments", segments=len(broken), record=data))
            self._reports(record)

    def _survey(self, digest: bytes) -> Survey | None:
        return self._state.surveys.get(digest) or self._surveys.get(digest)

    def _round(self, key: RoundKey) -> _RoundDraft:
        draft = self._rounds.get(key)
        if draft is None:
            draft = self._rounds[key] = _RoundDraft(self._state.rounds.get(key) or _UNKNOWN_ROUND)
        return draft

    def _seal(self, offset: int, record: SealRecord, data: bytes) -> None:
        survey = self._survey(record.digest)
        if survey is not None and record.round >= survey.rounds:
            self._dead.append(DeadLetter(offset, "seal of no round", record=data))
            return
        rules = self._state.seal_rules
        if rules is not None and not rules.admits(record, survey):
            self._dead.append(DeadLetter(offset, "forged seal", record=data))
            return
        if survey is None and not self._has_room((record.digest, record.round)):
            self._dead.append(DeadLetter(offset, "seal of no survey", record=data))
            return
        draft = self._round((record.digest, record.round))
        if not draft.is_sealed:
            draft.sealed_at = offset

    def _has_room(self, key: RoundKey) -> bool:
        """Return whether a seal of a survey that nobody announced may be kept, and count it."""
        if self._strangers is None:
            rounds = self._state.rounds.keys() | self._rounds.keys()
            self._strangers = {each for each in rounds if self._survey(each[0]) is None}
        if key not in self._strangers and len(self._strangers) >= MOST_UNKNOWN_SEALS:
            return False
        self._strangers.add(key)
        return True

    def _reports(self, record: ReportsRecord) -> None:
        self._unknown += record.unknown
        segments, without = record.segments, self._state.without
        if without:
            segments = tuple(
                each for each in segments if not (each.voucher and each.voucher.issuer in without)
            )
        for segment in segments:
            draft = self._rounds.get((segment.digest, segment.round))
            if draft is not None and record.minute >= draft.open_from and not draft.is_sealed:
                # Almost every segment is one more of its round.
                draft.waiting.append(segment)
                continue
            survey = self._survey(segment.digest)
            if survey is None:
                self._unknown += segment.attempts
            else:
                self._segment(survey, segment, minute=record.minute)

    def _is_here(self, survey: Survey, number: int) -> bool:
        begin, end = self._state.window
        return begin <= survey.round_start_s(number) < end

    def _segment(self, survey: Survey, segment: Segment, *, minute: int) -> None:
        if not 0 <= segment.round < survey.rounds or not self._is_here(survey, segment.round):
            draft = self._round((segment.digest, NO_ROUND))
            draft.verdicts += _refused(segment, invalid=len(segment))
            return
        draft = self._round((segment.digest, segment.round))
        # A round is early where its start is past 60 (minute + 1) + skew: this is rounded up.
        draft.open_from = -((survey.skew_s - survey.round_start_s(segment.round)) // 60) - 1
        is_early = minute < draft.open_from
        if not is_early and not draft.is_sealed:
            draft.waiting.append(segment)
            return
        valid = survey.channel.valid_mask(segment.symbols)
        kept = len(segment) if valid is None else int(np.count_nonzero(valid))
        invalid = len(segment) - kept
        if is_early:
            tally = _refused(segment, invalid=invalid, early=kept)
        else:
            tally = _refused(segment, invalid=invalid, late=kept)
        if draft.is_sealed:
            draft.after_seal += tally
        else:
            draft.verdicts += tally

    def change(self, offset: int) -> Change:
        return Change(
            previous=self._state.offset,
            offset=offset,
            surveys=self._surveys,
            rounds={key: self._counted(key, draft) for key, draft in self._rounds.items()},
            unknown=self._unknown,
            dead_letters=tuple(self._dead),
            new=frozenset(self._rounds.keys() - self._state.rounds.keys()),
        )

    def _counted(self, key: RoundKey, draft: _RoundDraft) -> RoundChange:
        if not draft.waiting:
            return RoundChange(NO_COUNTS, draft.verdicts, draft.sealed_at, draft.after_seal)
        survey = self._survey(key[0])
        assert survey is not None  # noqa: S101 - _segment saw it
        waiting = draft.waiting
        ids, symbols, valid = _valid(waiting, survey.channel)
        n, attempted = len(symbols), sum([len(segment.symbols) for segment in waiting])
        # Valid first, then new, then within the quotas: the order of the verdicts, column by column.
        accounting = draft.verdicts + _refused(*waiting, invalid=attempted - n)
        if not n:
            return RoundChange(NO_COUNTS, accounting, draft.sealed_at, draft.after_seal)
        known = draft.known
        seen = known.seen if known.seen is not None else self._state.id_set()
        vouched = vouched_by(waiting, known.issuers, valid)
        room = self._state.room(key, survey)
        issuers: dict[str, IssuerTally] = {}
        if vouched is None:
            fresh, over_quota = within_quota(room, seen, ids, seen.fresh(ids))
        else:
            rooms = self._state.issuer_rooms(known, vouched.vouchers)
            fresh, over = within_quotas(room, rooms, seen, ids, vouched.places)
            over_quota = int(np.count_nonzero(over))
            accepted = np.ones(n, dtype=np.bool_) if fresh.mask is None else fresh.mask
            issuers = tallies_of(vouched, symbols, accepted, over, survey.channel)
        reports = ids, symbols
        if fresh.mask is not None:
            symbols = symbols[fresh.mask]
        counts = count_symbols(symbols, survey.channel)
        duplicate = n - len(symbols) - over_quota
        accounting += VerdictCounts(accepted=len(symbols), duplicate=duplicate, over_quota=over_quota)
        return RoundChange(
            counts,
            accounting,
            draft.sealed_at,
            draft.after_seal,
            seen,
            fresh,
            issuers,
            (*known.issuers, *(name for name in issuers if name not in known.issuers)),
            reports,
        )


def _valid(
    segments: Iterable[Segment], channel: Channel
) -> tuple[list[bytes], NDArray[np.unsignedinteger], NDArray[np.bool_] | None]:
    """Return the ids and symbols of all reports, in their order, whose symbols the channel can send.

    The last is which of the reports they are, shape (attempted,); None for all of them.
    """
    ids: list[bytes] = []
    columns: list[NDArray[np.unsignedinteger]] = []
    masks: list[tuple[NDArray[np.bool_] | None, int]] = []
    # Numbers and sets of several widths cannot lie in one column; of them a channel sends only one kind.
    for _, group in groupby(segments, lambda segment: segment.symbols.shape[1:]):
        alike = list(group)
        symbols = _joined([segment.symbols for segment in alike])
        valid = channel.valid_mask(symbols)
        masks.append((valid, len(symbols)))
        if valid is None:
            ids += [segment.ids for segment in alike]
            columns.append(symbols)
            continue
        if valid.any():
            column = np.frombuffer(b"".join([segment.ids for segment in alike]), dtype=_ID)
            ids.append(column[valid].tobytes())
            columns.append(symbols[valid])
    found = _joined(columns) if columns else np.empty(0, dtype=np.uint8)
    if all(valid is None for valid, _ in masks):
        return ids, found, None
    whole = [np.ones(n, dtype=np.bool_) if valid is None else valid for valid, n in masks]
    return ids, found, np.concatenate(whole)


def _joined(columns: list[NDArray[np.unsignedinteger]]) -> NDArray[np.unsignedinteger]:
    return columns[0] if len(columns) == 1 else np.concatenate(columns)


def _refused(*segments: Segment, invalid: int = 0, early: int = 0, late: int = 0) -> VerdictCounts:
    """Return the attempts of segments and those refused, at the gateway and here; the rest is unjudged."""
    attempts = over_quota = 0
    for segment in segments:
        attempts += segment.attempts
        # Almost every segment comes without refusals.
        if refused := segment.refused:
            early += refused.get("early", 0)
            late += refused.get("late", 0)
            invalid += refused.get("invalid", 0)
            over_quota += refused.get("over_quota", 0)
    return VerdictCounts(attempts=attempts, early=early, late=late, invalid=invalid, over_quota=over_quota)
