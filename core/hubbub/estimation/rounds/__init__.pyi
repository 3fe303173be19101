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
