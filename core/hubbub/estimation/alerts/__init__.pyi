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
