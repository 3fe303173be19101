from hubbub_authoring.floor.least import (
    Floor as Floor,
    cumulative_floor as cumulative_floor,
    mean_floor as mean_floor,
    shares_floor as shares_floor,
)
from hubbub_authoring.floor.orbits import Weights as Weights, orbit_floor as orbit_floor
from hubbub_authoring.floor.patterns import pattern_floor as pattern_floor
from hubbub_authoring.floor.programme import Certificate as Certificate
