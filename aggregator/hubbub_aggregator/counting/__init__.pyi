from hubbub_aggregator.counting.counting import apply_many as apply_many
from hubbub_aggregator.counting.dead_letters import KeyedDeadLetters as KeyedDeadLetters, in_order as in_order
from hubbub_aggregator.counting.id_tables import IdTableKind as IdTableKind, id_table_of as id_table_of
from hubbub_aggregator.counting.issuers import OTHERS as OTHERS
from hubbub_aggregator.counting.partition import (
    Change as Change,
    PartitionState as PartitionState,
    RoundKey as RoundKey,
)
from hubbub_aggregator.counting.progress import Progress as Progress
from hubbub_aggregator.counting.seals import (
    SealRules as SealRules,
    SignSeal as SignSeal,
    seal_signer as seal_signer,
)
from hubbub_aggregator.counting.skip_offsets import skip_lost as skip_lost
from hubbub_aggregator.counting.skipping import (
    Skips as Skips,
    next_change as next_change,
    skip_record as skip_record,
    skips_of as skips_of,
)
from hubbub_aggregator.counting.verdict_counts import NOTHING as NOTHING
