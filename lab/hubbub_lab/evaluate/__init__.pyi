from hubbub_lab.evaluate.data import DataSpec as DataSpec, data_set as data_set, drafted as drafted
from hubbub_lab.evaluate.faults import FaultMix as FaultMix
from hubbub_lab.evaluate.page import page_of as page_of
from hubbub_lab.evaluate.results import EvaluationResults as EvaluationResults
from hubbub_lab.evaluate.run import CaseKey as CaseKey, EvaluationPlan as EvaluationPlan, evaluate as evaluate
from hubbub_lab.evaluate.surveys import (
    AUTO as AUTO,
    OWN as OWN,
    SurveyMaker as SurveyMaker,
    mechanism_name as mechanism_name,
)
