from hubbub_aggregator.counting.counting import (
    apply_many as apply_many,
    judged as judged,
    keep_freed_memory as keep_freed_memory,
)
from hubbub_aggregator.counting.dead_letters import (
    DeadLetters as DeadLetters,
    KeyedDeadLetters as KeyedDeadLetters,
    NullDeadLetters as NullDeadLetters,
    in_order as in_order,
)
from hubbub_aggregator.counting.dedup import IdTable as IdTable
from hubbub_aggregator.counting.id_tables import IdTableKind as IdTableKind, id_table_of as id_table_of
from hubbub_aggregator.counting.issuers import OTHERS as OTHERS
from hubbub_aggregator.counting.lost_offsets import LostRange as LostRange
from hubbub_aggregator.counting.partition import (
    Change as Change,
    Counts as Counts,
    PartitionState as PartitionState,
    RoundChange as RoundChange,
    RoundKey as RoundKey,
    RoundState as RoundState,
)
from hubbub_aggregator.counting.progress import Progress as Progress
from hubbub_aggregator.counting.seals import (
    SealRules as SealRules,
    SignSeal as SignSeal,
    seal_signer as seal_signer,
)
from hubbub_aggregator.counting.skip_offsets import lost_of as lost_of, skip_lost as skip_lost
from hubbub_aggregator.counting.skipping import (
    Skips as Skips,
    next_change as next_change,
    skip_record as skip_record,
    skips_of as skips_of,
)
from hubbub_aggregator.counting.verdict_counts import NOTHING as NOTHING, VerdictCounts as VerdictCounts
