from hubbub.estimation.alerts.alerts import (
    Alert as Alert,
    AlertRules as AlertRules,
    impossible_alerts as impossible_alerts,
    jump_alerts as jump_alerts,
    margin_alerts as margin_alerts,
    window_jumps as window_jumps,
)
from hubbub.estimation.alerts.always_valid import (
    Looks as Looks,
    always_valid as always_valid,
    always_valid_so_far as always_valid_so_far,
)
from hubbub.estimation.alerts.issuers import (
    IssuerDeviation as IssuerDeviation,
    issuer_deviation as issuer_deviation,
)
from hubbub.estimation.alerts.joint import joint_alerts as joint_alerts, window_joints as window_joints
from hubbub.estimation.alerts.score_noise import (
    ScoreNoise as ScoreNoise,
    SurveyNoise as SurveyNoise,
    survey_noise as survey_noise,
)
from hubbub.estimation.alerts.windows import RoundShares as RoundShares
from hubbub.estimation.choice import AnyEstimator as AnyEstimator, estimator_for as estimator_for
from hubbub.estimation.consistency import Consistent as Consistent, norm_sub as norm_sub
from hubbub.estimation.cumulative import (
    Cumulative as Cumulative,
    MAX_CURVE as MAX_CURVE,
    Quantile as Quantile,
    curve_cohort as curve_cohort,
)
from hubbub.estimation.em import Smoothed as Smoothed
from hubbub.estimation.estimate import Estimate as Estimate, Estimator as Estimator, Intervals as Intervals
from hubbub.estimation.estimator import InverseEstimator as InverseEstimator
from hubbub.estimation.inverses.block import (
    BlockInverse as BlockInverse,
    CollapsedInverse as CollapsedInverse,
)
from hubbub.estimation.inverses.inverse import (
    Arithmetic as Arithmetic,
    Inverse as Inverse,
    Numbers as Numbers,
    Solution as Solution,
    excess as excess,
    quotients as quotients,
)
from hubbub.estimation.items import ItemsEstimator as ItemsEstimator
from hubbub.estimation.margins import MarginsEstimator as MarginsEstimator
from hubbub.estimation.poison import PoisonMargin as PoisonMargin, Reach as Reach
from hubbub.estimation.ranks import rank_sets as rank_sets
from hubbub.estimation.rounds.change import (
    Difference as Difference,
    Ends as Ends,
    correlation as correlation,
    device_variances as device_variances,
    difference as difference,
    effective_sample_size as effective_sample_size,
    mean_correlation as mean_correlation,
    shared_devices as shared_devices,
)
from hubbub.estimation.rounds.trend import (
    StepBand as StepBand,
    Trend as Trend,
    step_band as step_band,
    smoothed_trend as smoothed_trend,
)
from hubbub.estimation.score import ScoreEstimator as ScoreEstimator
from hubbub.estimation.poison import selection_bound as selection_bound
from hubbub.estimation.shrinkage import empirical_bayes as empirical_bayes
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
from hubbub.estimation.tree_estimator import TreeEstimator as TreeEstimator
from hubbub.estimation.trees.tree import Tree as Tree
