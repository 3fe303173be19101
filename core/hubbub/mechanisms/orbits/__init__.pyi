from hubbub.mechanisms.orbits.channel import OrbitChannel as OrbitChannel
from hubbub.mechanisms.orbits.estimator import OrbitEstimator as OrbitEstimator
from hubbub.mechanisms.orbits.integers import compiled as compiled
from hubbub.mechanisms.orbits.sampling import Orbit as Orbit
from hubbub.mechanisms.orbits.short import ShortOrbitChannel as ShortOrbitChannel
