from hubbub_lab.evaluation.audit import Sampler as Sampler, audit as audit
from hubbub_lab.evaluation.evaluation import truth_of as truth_of
from hubbub_lab.evaluation.people import columns_of as columns_of, quality as quality, values_of as values_of
from hubbub_lab.evaluation.plots import as_typed as as_typed, log_axes as log_axes, plot as plot
from hubbub_lab.evaluation.people import load as load
from hubbub_lab.evaluation.report import (
    Evaluation as Evaluation,
    Rows as Rows,
    print_json as print_json,
    show as show,
)
from hubbub_lab.evaluation.tables import PLAIN as PLAIN, Spelling as Spelling, read_people as read_people
