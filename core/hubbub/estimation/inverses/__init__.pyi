from hubbub.estimation.inverses.inverse import (
    Arithmetic as Arithmetic,
    Inverse as Inverse,
    Numbers as Numbers,
    Solution as Solution,
    excess as excess,
    quotients as quotients,
)
from hubbub.estimation.inverses.inversion import invert as invert, own_categories as own_categories
