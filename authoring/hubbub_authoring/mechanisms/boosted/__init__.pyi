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
from hubbub_authoring.mechanisms.boosted.search import largest as largest, least as least
