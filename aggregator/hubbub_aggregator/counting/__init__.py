"""The counting of reports: verdicts, duplicates and dead letters."""

from typing import TYPE_CHECKING

from hubbub.lazy import attach

if TYPE_CHECKING:
    from hubbub_aggregator.counting.counting import apply_many, keep_freed_memory
    from hubbub_aggregator.counting.dead_letters import (
        DeadLetters,
        KeyedDeadLetters,
        NullDeadLetters,
        in_order,
    )
    from hubbub_aggregator.counting.dedup import IdTable
    from hubbub_aggregator.counting.id_tables import IdTableKind, id_table_of
    from hubbub_aggregator.counting.issuers import OTHERS
    from hubbub_aggregator.counting.lost_offsets import LostRange
    from hubbub_aggregator.counting.partition import (
        Change,
        Counts,
        PartitionState,
        RoundChange,
        RoundKey,
        RoundState,
    )
    from hubbub_aggregator.counting.progress import Progress
    from hubbub_aggregator.counting.seals import SealRules, SignSeal, seal_signer
    from hubbub_aggregator.counting.skip_offsets import lost_of, skip_lost
    from hubbub_aggregator.counting.skipping import Skips, next_change, skip_record, skips_of
    from hubbub_aggregator.counting.verdict_counts import NOTHING, VerdictCounts

__all__ = [
    "NOTHING",
    "OTHERS",
    "Change",
    "Counts",
    "DeadLetters",
    "IdTable",
    "IdTableKind",
    "KeyedDeadLetters",
    "LostRange",
    "NullDeadLetters",
    "PartitionState",
    "Progress",
    "RoundChange",
    "RoundKey",
    "RoundState",
    "SealRules",
    "SignSeal",
    "Skips",
    "VerdictCounts",
    "apply_many",
    "id_table_of",
    "in_order",
    "keep_freed_memory",
    "lost_of",
    "next_change",
    "seal_signer",
    "skip_lost",
    "skip_record",
    "skips_of",
]

attach(
    __name__,
    {
        "hubbub_aggregator.counting.counting": (
            "apply_many",
            "keep_freed_memory",
        ),
        "hubbub_aggregator.counting.dead_letters": (
            "DeadLetters",
            "KeyedDeadLetters",
            "NullDeadLetters",
            "in_order",
        ),
        "hubbub_aggregator.counting.dedup": ("IdTable",),
        "hubbub_aggregator.counting.id_tables": (
            "IdTableKind",
            "id_table_of",
        ),
        "hubbub_aggregator.counting.issuers": ("OTHERS",),
        "hubbub_aggregator.counting.lost_offsets": ("LostRange",),
        "hubbub_aggregator.counting.partition": (
            "Change",
            "Counts",
            "PartitionState",
            "RoundChange",
            "RoundKey",
            "RoundState",
        ),
        "hubbub_aggregator.counting.progress": ("Progress",),
        "hubbub_aggregator.counting.seals": ("SealRules", "SignSeal", "seal_signer"),
        "hubbub_aggregator.counting.skip_offsets": (
            "skip_lost",
            "lost_of",
        ),
        "hubbub_aggregator.counting.skipping": (
            "Skips",
            "next_change",
            "skip_record",
            "skips_of",
        ),
        "hubbub_aggregator.counting.verdict_counts": (
            "VerdictCounts",
            "NOTHING",
        ),
    },
)
