from hubbub.filter.regression.component import (
    MAX_EVALUATIONS as MAX_EVALUATIONS,
    RegressionComponent as RegressionComponent,
)
from hubbub.filter.regression.regression import (
    Box as Box,
    MAX_NUMBERS as MAX_NUMBERS,
    Regression as Regression,
    TOTAL as TOTAL,
)
from hubbub.filter.regression.relaxation import WorkBudget as WorkBudget
