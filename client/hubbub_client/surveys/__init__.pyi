from hubbub_client.surveys.load import (
    SurveyLoad as SurveyLoad,
    answer_work as answer_work,
    survey_load as survey_load,
)
from hubbub_client.surveys.rotation import SEED_BYTES as SEED_BYTES, slot_in_cycle as slot_in_cycle
from hubbub_client.surveys.schedule import (
    Enrolment as Enrolment,
    MEMOISED as MEMOISED,
    Refusal as Refusal,
    asks_for as asks_for,
    check_eligibility as check_eligibility,
    decode_listed_surveys as decode_listed_surveys,
    due as due,
    first_round as first_round,
    is_drawn as is_drawn,
    is_static as is_static,
    joined_pin_versions as joined_pin_versions,
    last_closed_round as last_closed_round,
    memoised_by as memoised_by,
    memoised_coordinate as memoised_coordinate,
    most_answers as most_answers,
    scheduled_answer_of as scheduled_answer_of,
    scheduled_answers as scheduled_answers,
    scheduled_query as scheduled_query,
    trusted as trusted,
)
from hubbub_client.surveys.stored_list import StoredList as StoredList
from hubbub_client.surveys.survey_lists import (
    ListRefusal as ListRefusal,
    list_refusal as list_refusal,
    newest as newest,
    opened as opened,
    pinned as pinned,
    unverified as unverified,
)
from hubbub_client.surveys.window import window_loss as window_loss, window_of as window_of
