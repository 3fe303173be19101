from hubbub_authoring.design.asked import ASKED as ASKED, Floors as Floors, frontier as frontier
from hubbub_authoring.design.cohort import (
    Cohort as Cohort,
    cohort_widths as cohort_widths,
    least_cohort as least_cohort,
)
from hubbub_authoring.design.comparison import (
    Candidate as Candidate,
    Comparison as Comparison,
    Study as Study,
    answered as answered,
    boost_curve as boost_curve,
    choose as choose,
    compare as compare,
    measured as measured,
    measured_by_category as measured_by_category,
    within_gain as within_gain,
)
from hubbub_authoring.design.distance import (
    Distance as Distance,
    WORDS as WORDS,
    distances as distances,
    survey_distances as survey_distances,
)
from hubbub_authoring.design.expected_error import (
    Accuracy as Accuracy,
    Errors as Errors,
    accuracy as accuracy,
    expected_error as expected_error,
    report_bytes as report_bytes,
)
from hubbub_authoring.design.leverage import Guess as Guess, best_guess as best_guess
from hubbub_authoring.design.key_value import (
    Crowd as Crowd,
    better as better,
    candidates as candidates,
    survey_variance as survey_variance,
)
from hubbub_authoring.design.leverage import FORGED as FORGED
from hubbub_authoring.design.lifetime import (
    LifetimePlan as LifetimePlan,
    Spending as Spending,
    spread as spread,
)
from hubbub_authoring.design.plan import AccuracyPlan as AccuracyPlan, MOST_EPSILON as MOST_EPSILON
from hubbub_authoring.design.lifetime import (
    PlannedSurvey as PlannedSurvey,
    WantedSurvey as WantedSurvey,
    planned as planned,
    widened as widened,
)
from hubbub_authoring.mechanisms.workload import (
    OBJECTIVES as OBJECTIVES,
    Objective as Objective,
    QUANTITIES as QUANTITIES,
    Quantity as Quantity,
    Workload as Workload,
)
