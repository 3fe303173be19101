"""Count reports, keep the counts, release the estimates, show them."""

from typing import TYPE_CHECKING

from hubbub.lazy import attach

if TYPE_CHECKING:
    from hubbub_aggregator.errors import (
        AccountingError,
        AggregatorError,
        Ahead,
        ArchiveError,
        ArchiveFull,
        ClockDoubt,
        CorruptStore,
        Diverged,
        ForeignStore,
        Gap,
        LeaseLost,
        Lost,
        PartitionMapGrown,
        StoreConflict,
        StoreError,
        Superseded,
        Unappliable,
        is_foreseen,
        last_words,
    )

__all__ = [
    "AccountingError",
    "AggregatorError",
    "Ahead",
    "ArchiveError",
    "ArchiveFull",
    "ClockDoubt",
    "CorruptStore",
    "Diverged",
    "ForeignStore",
    "Gap",
    "LeaseLost",
    "Lost",
    "PartitionMapGrown",
    "StoreConflict",
    "StoreError",
    "Superseded",
    "Unappliable",
    "is_foreseen",
    "last_words",
]

attach(
    __name__,
    {
        "hubbub_aggregator.errors": (
            "AccountingError",
            "AggregatorError",
            "Ahead",
            "ArchiveError",
            "ArchiveFull",
            "ClockDoubt",
            "CorruptStore",
            "Diverged",
            "ForeignStore",
            "Gap",
            "PartitionMapGrown",
            "LeaseLost",
            "Lost",
            "StoreConflict",
            "StoreError",
            "Superseded",
            "Unappliable",
            "is_foreseen",
            "last_words",
        ),
    },
)
