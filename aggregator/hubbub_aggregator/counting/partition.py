"""The counts of one partition, and changes to them: values, no I/O, no clock.

`counting.apply_many` computes a Change from a PartitionState and records; `PartitionState.commit` makes it,
and a store keeps it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hubbub.survey import Survey
from hubbub.wire import PartitionMap, Voucher
from hubbub_aggregator.counting.dead_letters import DeadLetter
from hubbub_aggregator.counting.dedup import Fresh, IdSet, IdTable, Keys
from hubbub_aggregator.counting.issuers import IssuerTallies, IssuerTally, merged
from hubbub_aggregator.counting.lost_offsets import LostRange
from hubbub_aggregator.counting.seals import SealRules
from hubbub_aggregator.counting.verdict_counts import NOTHING, VerdictCounts

Counts: TypeAlias = NDArray[np.int64]
RoundKey: TypeAlias = tuple[bytes, int]

NO_COUNTS: Final[Counts] = np.zeros(0, dtype=np.int64)
_NO_KEYS: Final[Keys] = np.zeros(0, dtype=np.uint64)


def share_of(quota: int, share: tuple[int, int]) -> int:
    """Return how many reports of a round one partition takes of a survey's quota.

    Ids are uniform over the partitions, so each takes an equal part, and the parts sum to the quota: no
    partition need know what another one took, and a replay comes to the same.

    Args:
        quota: The most reports that a round takes in all its partitions together.
        share: The partition's number p among the P of its topic, and P.
    """
    number, partitions = share
    return quota // partitions + (number < quota % partitions)


@dataclass(slots=True)
class RoundState:
    """One round of one survey in one partition.

    Attributes:
        counts: Accepted reports per bin, a symbol or a bit of a set, shape (bins,), int64; empty until the
            first is accepted.
        verdicts: Everything up to the seal.
        sealed_at: The seal's offset, or None while the round is open.
        after_seal: Everything after the seal; no release contains it.
        seen: Ids accepted in the open round; None where none was, and after the seal.
        is_archived: Whether its counts and tallies were let go of, because an archive has its release.
        issuers: Issuer -> what it vouched for up to the seal, in the order of their first reports.
    """

    counts: Counts = field(default_factory=NO_COUNTS.copy)
    verdicts: VerdictCounts = NOTHING
    sealed_at: int | None = None
    after_seal: VerdictCounts = NOTHING
    seen: IdSet | None = None
    is_archived: bool = False
    issuers: dict[str, IssuerTally] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class RoundChange:
    """A change of one round: the fields of RoundState as differences, and the new ids.

    Attributes:
        counts: Newly accepted reports per bin, int64; empty for none.
        verdicts: Added before the seal.
        sealed_at: The seal's offset where these records hold the first one.
        after_seal: Added after the seal.
        seen: The round's set of ids as it was looked at; None where nothing had to be looked up.
        fresh: What `seen` said of the new ids.
        issuers: Added by issuer, in the order of their first reports.
        issuer_names: Every issuer of the round with these records, known ones first, where any is added.
        reports: The columns of ids, and the symbols, of its valid reports in time, counted or not; None where
            there are none.
    """

    counts: Counts
    verdicts: VerdictCounts
    sealed_at: int | None
    after_seal: VerdictCounts
    seen: IdSet | None = None
    fresh: Fresh | None = None
    issuers: IssuerTallies = field(default_factory=dict)
    issuer_names: tuple[str, ...] = ()
    reports: tuple[Sequence[bytes], NDArray[np.unsignedinteger]] | None = None

    @property
    def keys(self) -> Keys:
        """Keys of the newly accepted ids that a store must keep: none once the round is sealed."""
        return _NO_KEYS if self.fresh is None or self.sealed_at is not None else self.fresh.keys


@dataclass(frozen=True, slots=True, eq=False)
class Change:
    """A change of a partition by some records; committing it moves the offset from `previous` to `offset`.

    Attributes:
        previous: The state's next offset before.
        offset: The next offset after; equal to `previous` where every record was a redelivery.
        surveys: Newly announced surveys by digest.
        rounds: What changes per (digest, round).
        unknown: Reports of unannounced digests.
        dead_letters: One for every record that did not decode, whole or in part.
        lost: What an operator has given up for good.
        new: The rounds that the state did not know; a store must know all others.
    """

    previous: int
    offset: int
    surveys: Mapping[bytes, Survey]
    rounds: Mapping[RoundKey, RoundChange]
    unknown: int
    dead_letters: tuple[DeadLetter, ...] = ()
    lost: tuple[LostRange, ...] = ()
    new: frozenset[RoundKey] = frozenset()

    @property
    def dead(self) -> int:
        """The number of records that did not decode."""
        return len(self.dead_letters)


@dataclass(slots=True)
class PartitionState:
    """The counts of one partition up to an offset.

    Attributes:
        offset: The next offset to apply.
        surveys: Announced surveys by digest.
        rounds: By (digest, round); NO_ROUND collects what lies outside the schedule.
        unknown: Reports of digests that no survey record announced.
        dead: Records that did not decode, whole or in part.
        lost: Offsets that were never counted, by an operator's word.
        past: The tallies of rounds that are archived and not kept here any more.
        share: The partition's number among those of its topic, and how many those are; None where it was not
            placed in a log, and then no quota can be judged.
        window: The starts of the rounds whose reports lie here, seconds since 1970: from the first on, and
            below the second. Other rounds' repeats would be known elsewhere: here their reports are invalid.
        id_set: Makes the set that remembers a round's ids.
        seal_rules: Which seals are the sealer's; None where all are.
        without: Issuers whose reports are passed over, as if they had never come; for a recount alone.
    """

    offset: int = 0
    surveys: dict[bytes, Survey] = field(default_factory=dict)
    rounds: dict[RoundKey, RoundState] = field(default_factory=dict)
    unknown: int = 0
    dead: int = 0
    lost: tuple[LostRange, ...] = ()
    past: VerdictCounts = NOTHING
    share: tuple[int, int] | None = None
    window: tuple[int, float] = (0, float("inf"))
    id_set: Callable[[], IdSet] = IdTable
    seal_rules: SealRules | None = None
    without: frozenset[str] = frozenset()

    def place(self, partition_map: PartitionMap, partition: int) -> None:
        """Set what follows from where the partition lies in a log: its share of quotas, and its rounds."""
        self.share, self.window = partition_map.share(partition), partition_map.window(partition)

    def room(self, key: RoundKey, survey: Survey) -> int | None:
        """Return how many more reports of a round count here, or None where its survey has no quota.

        Raises:
            ValueError: If it has one, and the partition was not placed.
        """
        if survey.quota is None:
            return None
        if self.share is None:
            raise ValueError(f"a partition must be placed in a log to judge a quota of {survey.quota}")
        known = self.rounds.get(key)
        taken = 0 if known is None else known.verdicts.accepted
        return max(0, share_of(survey.quota, self.share) - taken)

    def issuer_rooms(
        self, known: RoundState, vouchers: Iterable[Voucher | None]
    ) -> list[tuple[str | None, int | None]]:
        """Return for each voucher its issuer and how many more of its reports of a round count here.

        Raises:
            ValueError: If one states a quota, and the partition was not placed.
        """
        found: list[tuple[str | None, int | None]] = []
        for voucher in vouchers:
            issuer, quota = (None, None) if voucher is None else voucher
            if issuer is None or quota is None:
                found.append((issuer, None))
                continue
            if self.share is None:
                raise ValueError(f"a partition must be placed in a log to judge an issuer's quota of {quota}")
            taken = known.issuers[issuer].accepted if issuer in known.issuers else 0
            found.append((issuer, max(0, share_of(quota, self.share) - taken)))
        return found

    def counted(self, key: RoundKey) -> bool:
        """Return whether a round's counts are those of as many reports as it accepted, by issuer, too."""
        known, survey = self.rounds[key], self.surveys.get(key[0])
        if survey is None:
            return not len(known.counts) and not known.verdicts.accepted and not known.issuers
        vouched = known.issuers.values()
        return (
            survey.channel.agrees(known.counts, known.verdicts.accepted)
            and all(survey.channel.agrees(tally.counts, tally.accepted) for tally in vouched)
            and sum(tally.accepted for tally in vouched) <= known.verdicts.accepted
        )

    def commit(self, change: Change) -> None:
        """Make a change that `apply_many` computed from this very state.

        Raises:
            ValueError: If the state has moved since; it is then left as it is.
        """
        if change.previous != self.offset:
            raise ValueError(f"change must start at offset {self.offset}, got {change.previous}")
        for key, new in change.rounds.items():
            known = self.rounds.setdefault(key, RoundState())
            if new.seen is not None and new.fresh is not None and new.sealed_at is None:
                new.seen.add(new.fresh)
                known.seen = new.seen
            if len(new.counts):
                known.counts = known.counts + new.counts if len(known.counts) else new.counts
            if new.issuers:
                known.issuers = merged(known.issuers, new.issuers)
            known.verdicts += new.verdicts
            known.after_seal += new.after_seal
            if new.sealed_at is not None:
                known.sealed_at, known.seen = new.sealed_at, None
        self.surveys.update(change.surveys)
        self.unknown += change.unknown
        self.dead += change.dead
        self.lost += change.lost
        self.offset = change.offset
