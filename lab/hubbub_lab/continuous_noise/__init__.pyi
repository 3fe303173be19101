from hubbub_lab.continuous_noise.boost import BoostedNoise as BoostedNoise
