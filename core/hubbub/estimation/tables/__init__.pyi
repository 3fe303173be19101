from hubbub.estimation.tables.groups import (
    RefusedStatisticError as RefusedStatisticError,
    conditional_shares as conditional_shares,
    group_difference as group_difference,
    group_means as group_means,
    odds_ratio as odds_ratio,
    reweighted_shares as reweighted_shares,
)
from hubbub.estimation.tables.independence import (
    Association as Association,
    Independence as Independence,
    association as association,
    holm as holm,
    independence as independence,
)
from hubbub.estimation.tables.noise import Noise as Noise, TableNoise as TableNoise
from hubbub.estimation.tables.regression import (
    Regressed as Regressed,
    linear_regression as linear_regression,
    paired_regression as paired_regression,
)
from hubbub.estimation.tables.shares import RatioSpan as RatioSpan, TableShares as TableShares
