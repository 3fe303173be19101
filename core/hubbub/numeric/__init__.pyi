from hubbub.numeric.exact import (
    HEADROOM as HEADROOM,
    MAX_EPSILON as MAX_EPSILON,
    MIN_EPSILON as MIN_EPSILON,
    checked_epsilon as checked_epsilon,
    exp_below as exp_below,
    log_above as log_above,
)
from hubbub.numeric.randomness import (
    MAX_TOTAL as MAX_TOTAL,
    SYSTEM as SYSTEM,
    Source as Source,
    UniformInteger as UniformInteger,
    Words as Words,
    bernoulli as bernoulli,
)
