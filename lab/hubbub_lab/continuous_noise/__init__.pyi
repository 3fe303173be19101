from hubbub_lab.continuous_noise.boost import (
    AbsoluteRegion as AbsoluteRegion,
    BoostedNoise as BoostedNoise,
    FixedRegion as FixedRegion,
    Interval as Interval,
    Region as Region,
    boost_for as boost_for,
    hardest as hardest,
)
from hubbub_lab.continuous_noise.direction import (
    Target as Target,
    category_confidence as category_confidence,
    least_epsilon as least_epsilon,
    least_epsilon_of_categories as least_epsilon_of_categories,
    most_boost_of_categories as most_boost_of_categories,
    most_confidence as most_confidence,
    narrowest_region as narrowest_region,
)
from hubbub_lab.continuous_noise.noise import NoiseKernel as NoiseKernel
from hubbub_lab.continuous_noise.noise_direction import NoiseDesign as NoiseDesign, NoiseTarget as NoiseTarget
from hubbub_lab.continuous_noise.pair import PairLoss as PairLoss
from hubbub_lab.continuous_noise.pair_search import PairSearch as PairSearch
from hubbub_lab.continuous_noise.profile import Profile as Profile
from hubbub_lab.continuous_noise.scaled import scaled as scaled
