from hubbub_lab import (
    continuous_noise as continuous_noise,
    evaluate as evaluate,
    evaluation as evaluation,
    filters as filters,
    simulation as simulation,
)
