from hubbub_authoring.floor.least import (
    Floor as Floor,
    cumulative_floor as cumulative_floor,
    mean_floor as mean_floor,
    shares_floor as shares_floor,
    table_floor as table_floor,
)
from hubbub_authoring.floor.orbits import Weights as Weights, orbit_floor as orbit_floor
from hubbub_authoring.floor.patterns import pattern_floor as pattern_floor
from hubbub_authoring.floor.programme import Certificate as Certificate
from hubbub_authoring.floor.spectral import (
    spectral_floor as spectral_floor,
    spectral_shares as spectral_shares,
    spectral_tables as spectral_tables,
    spectral_tree as spectral_tree,
)
