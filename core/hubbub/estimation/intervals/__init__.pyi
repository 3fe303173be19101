from hubbub.estimation.intervals.fieller import RatioMean as RatioMean
from hubbub.estimation.intervals.laws import (
    CellLaw as CellLaw,
    MixedLaw as MixedLaw,
    two_valued as two_valued,
)
from hubbub.estimation.intervals.skew_score import (
    score_interval as score_interval,
    skew_quantile as skew_quantile,
)
from hubbub.estimation.intervals.tree_law import node_law as node_law
