from hubbub.mechanisms.category_grr import CategoryGRR as CategoryGRR
from hubbub.mechanisms.grr import GRR as GRR, grr as grr
from hubbub.mechanisms.hashing.hash_pool import MAX_SYMBOLS as MAX_SYMBOLS
from hubbub.mechanisms.hashing.local_hashing import (
    LocalHashing as LocalHashing,
    local_hashing as local_hashing,
)
from hubbub.mechanisms.integers import integerise as integerise
from hubbub.mechanisms.levels.levels import Levels as Levels, levels as levels
from hubbub.mechanisms.levels.set_levels import SetLevels as SetLevels
from hubbub.mechanisms.participation import with_dummy_reports as with_dummy_reports
from hubbub.mechanisms.pbgrr import PBGRR as PBGRR
from hubbub.mechanisms.registry import channel_from_spec as channel_from_spec
from hubbub.mechanisms.rounding import stochastic as stochastic, stochastic_many as stochastic_many
from hubbub.mechanisms.subset import SubsetSelection as SubsetSelection, subset_selection as subset_selection
from hubbub.mechanisms.tree.channel import tree as tree
from hubbub.mechanisms.unary import Unary as Unary, unary as unary
from hubbub_authoring.mechanisms.boosted.boosted import (
    Absolute as Absolute,
    Boosted as Boosted,
    Fixed as Fixed,
    Relative as Relative,
    boosted as boosted,
    brdp as brdp,
)
from hubbub_authoring.mechanisms.boosted.grid import Region as Region
from hubbub_authoring.mechanisms.boosted.kernels import KernelName as KernelName
from hubbub_authoring.mechanisms.boosted.r2dp import METRICS as METRICS, Metric as Metric, r2dp as r2dp
from hubbub_authoring.mechanisms.boosted.scalar import (
    ScalarChannel as ScalarChannel,
    duchi as duchi,
    hybrid as hybrid,
    piecewise as piecewise,
    square_wave as square_wave,
)
from hubbub_authoring.mechanisms.boosted.scale_laws import (
    Gamma as Gamma,
    ScaleLaw as ScaleLaw,
    TruncatedGaussian as TruncatedGaussian,
    TwoPoint as TwoPoint,
    UniformScale as UniformScale,
)
from hubbub_authoring.mechanisms.boosted.search import least as least
from hubbub_authoring.mechanisms.neighbourhood import (
    Neighbourhood as Neighbourhood,
    neighbourhood as neighbourhood,
)
from hubbub_authoring.mechanisms.pbgrr import pbgrr as pbgrr
from hubbub_authoring.mechanisms.registry import REGISTERED as REGISTERED
