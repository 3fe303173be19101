from hubbub.filter.bayesian import BayesianFilter as BayesianFilter, MAX_BUDGET as MAX_BUDGET
from hubbub.filter.constant import ConstantLaw as ConstantLaw, constant_law as constant_law
from hubbub.filter.query import (
    Joint as Joint,
    Likelihood as Likelihood,
    MAX_CELLS as MAX_CELLS,
    Query as Query,
)
from hubbub.filter.regression.regression import (
    Box as Box,
    MAX_NUMBERS as MAX_NUMBERS,
    Regression as Regression,
    TOTAL as TOTAL,
)
