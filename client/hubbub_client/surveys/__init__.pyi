from hubbub_client.surveys.load import survey_load as survey_load
from hubbub_client.surveys.rotation import SEED_BYTES as SEED_BYTES, slot_in_cycle as slot_in_cycle
from hubbub_client.surveys.schedule import (
    MEMOISED as MEMOISED,
    Refusal as Refusal,
    check_eligibility as check_eligibility,
    decode_listed_surveys as decode_listed_surveys,
    due as due,
    is_static as is_static,
    last_closed_round as last_closed_round,
    most_answers as most_answers,
    scheduled_answer_of as scheduled_answer_of,
    scheduled_answers as scheduled_answers,
    scheduled_query as scheduled_query,
)
from hubbub_client.surveys.survey_lists import unverified as unverified
from hubbub_client.surveys.window import window_loss as window_loss, window_of as window_of
