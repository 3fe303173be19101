from hubbub.estimation.alerts.alerts import (
    Alert as Alert,
    AlertRules as AlertRules,
    RoundShares as RoundShares,
    impossible_alerts as impossible_alerts,
    jump_alerts as jump_alerts,
    margin_alerts as margin_alerts,
)
from hubbub.estimation.alerts.issuers import (
    IssuerDeviation as IssuerDeviation,
    issuer_deviation as issuer_deviation,
)
from hubbub.estimation.alerts.joint import joint_alerts as joint_alerts
from hubbub.estimation.alerts.score_noise import (
    ScoreNoise as ScoreNoise,
    SurveyNoise as SurveyNoise,
    survey_noise as survey_noise,
)
