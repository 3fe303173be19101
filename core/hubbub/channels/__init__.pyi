from hubbub.channels.channel import (
    Channel as Channel,
    MAX_HASHED as MAX_HASHED,
    MAX_INPUTS as MAX_INPUTS,
    MAX_WEIGHTS as MAX_WEIGHTS,
)
from hubbub.channels.designed import CurveChannel as CurveChannel, WeightedChannel as WeightedChannel
from hubbub.channels.divergence import (
    BlockDivergence as BlockDivergence,
    Detail as Detail,
    MAX_BLOCKS as MAX_BLOCKS,
    UNIT as UNIT,
    UNITS_PER_NAT as UNITS_PER_NAT,
    fixed_up as fixed_up,
    log_floor as log_floor,
    log_floor_of as log_floor_of,
)
from hubbub.channels.finite import (
    DenseChannel as DenseChannel,
    FiniteChannel as FiniteChannel,
    Symbols as Symbols,
)
from hubbub.channels.partition import Partition as Partition
from hubbub.channels.sets import (
    AttemptChannel as AttemptChannel,
    Attempts as Attempts,
    CELLS as CELLS,
    Level as Level,
    SetChannel as SetChannel,
    Sets as Sets,
    Support as Support,
    WORD as WORD,
    sizes_of as sizes_of,
)
from hubbub.channels.spec import (
    SpecValue as SpecValue,
    check_spec_keys as check_spec_keys,
    spec_int as spec_int,
    spec_ints as spec_ints,
)
from hubbub.channels.symbols import (
    MAX_SYMBOL_BYTES as MAX_SYMBOL_BYTES,
    SparseColumn as SparseColumn,
    Symbol as Symbol,
)
