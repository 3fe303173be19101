from hubbub_lab.continuous_noise.boost import (
    AbsoluteRegion as AbsoluteRegion,
    BoostedNoise as BoostedNoise,
    FixedRegion as FixedRegion,
    Interval as Interval,
    Region as Region,
    boost_for as boost_for,
    hardest as hardest,
)
from hubbub_lab.continuous_noise.noise import NoiseKernel as NoiseKernel
from hubbub_lab.continuous_noise.pair import PairLoss as PairLoss
from hubbub_lab.continuous_noise.pair import PairSearch as PairSearch
from hubbub_lab.continuous_noise.profile import Profile as Profile
