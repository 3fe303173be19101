from hubbub.mechanisms.bundle.channel import (
    MAX_BUNDLED as MAX_BUNDLED,
    MAX_ORDER as MAX_ORDER,
    MAX_PARTS as MAX_PARTS,
    SampledPart as SampledPart,
    SampledParts as SampledParts,
    components_of as components_of,
)
from hubbub.mechanisms.bundle.estimator import (
    BundleEstimate as BundleEstimate,
    BundleEstimator as BundleEstimator,
)
from hubbub.mechanisms.bundle.latin import LatinSelection as LatinSelection
from hubbub.mechanisms.bundle.noise import PairedTables as PairedTables, PooledNoise as PooledNoise
from hubbub.mechanisms.bundle.pooling import Pooling as Pooling, told_by as told_by
from hubbub.mechanisms.bundle.toss import PART_ALARM as PART_ALARM, part_chances as part_chances
from hubbub.mechanisms.category_grr import CategoryGRR as CategoryGRR
from hubbub.mechanisms.category_weights import category_weights as category_weights
from hubbub.mechanisms.grr import GRR as GRR, grr as grr, symmetric_weights as symmetric_weights
from hubbub.mechanisms.hashing.hash_pool import MAX_SYMBOLS as MAX_SYMBOLS
from hubbub.mechanisms.hashing.local_hashing import (
    LocalHashing as LocalHashing,
    local_hashing as local_hashing,
)
from hubbub.mechanisms.integers import (
    column_epsilon as column_epsilon,
    integer_rows as integer_rows,
    integerise as integerise,
)
from hubbub.mechanisms.levels.hierarchy import Hierarchy as Hierarchy
from hubbub.mechanisms.levels.levels import Levels as Levels, levels as levels
from hubbub.mechanisms.levels.set_levels import SetLevels as SetLevels
from hubbub.mechanisms.integers import with_missing as with_missing
from hubbub.mechanisms.orbits.channel import OrbitChannel as OrbitChannel
from hubbub.mechanisms.orbits.estimator import OrbitEstimator as OrbitEstimator
from hubbub.mechanisms.orbits.short import compiled as compiled
from hubbub.mechanisms.orbits.short import shortest as shortest
from hubbub.mechanisms.participation import with_dummy_reports as with_dummy_reports
from hubbub.mechanisms.pbgrr import PBGRR as PBGRR
from hubbub.mechanisms.registry import channel_from_spec as channel_from_spec
from hubbub.mechanisms.rounding import stochastic as stochastic, stochastic_many as stochastic_many
from hubbub.mechanisms.set_selection import (
    MAX_MOST as MAX_MOST,
    SetSelection as SetSelection,
    item_variance as item_variance,
    set_selection as set_selection,
)
from hubbub.mechanisms.subset import SubsetSelection as SubsetSelection, subset_selection as subset_selection
from hubbub.mechanisms.tree.channel import tree as tree
from hubbub.mechanisms.tree.nested import NestedLevels as NestedLevels, nested_levels as nested_levels
from hubbub.mechanisms.tree.shares import (
    PURPOSES as PURPOSES,
    Purpose as Purpose,
    STEPS as STEPS,
    middle as middle,
)
from hubbub.mechanisms.unary import Unary as Unary, Variant as Variant, unary as unary
