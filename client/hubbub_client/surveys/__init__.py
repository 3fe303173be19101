"""The lists of surveys that a device takes, and the schedule of what it reserves and answers."""

from typing import TYPE_CHECKING

from hubbub.lazy import attach

if TYPE_CHECKING:
    from hubbub_client.surveys.load import SurveyLoad, answer_work, survey_load
    from hubbub_client.surveys.schedule import (
        MEMOISED,
        Enrolment,
        Refusal,
        asks_for,
        check_eligibility,
        decode_listed_surveys,
        due,
        first_round,
        is_static,
        joined_pin_versions,
        last_closed_round,
        memoised_by,
        memoised_coordinate,
        scheduled_answer_of,
        scheduled_answers,
        scheduled_query,
        trusted,
    )
    from hubbub_client.surveys.stored_list import StoredList
    from hubbub_client.surveys.survey_lists import (
        ListRefusal,
        list_refusal,
        newest,
        opened,
        pinned,
        unverified,
    )

__all__ = [
    "MEMOISED",
    "Enrolment",
    "ListRefusal",
    "Refusal",
    "StoredList",
    "SurveyLoad",
    "answer_work",
    "asks_for",
    "check_eligibility",
    "decode_listed_surveys",
    "due",
    "first_round",
    "is_static",
    "joined_pin_versions",
    "last_closed_round",
    "list_refusal",
    "memoised_by",
    "memoised_coordinate",
    "newest",
    "opened",
    "pinned",
    "scheduled_answer_of",
    "scheduled_answers",
    "scheduled_query",
    "survey_load",
    "trusted",
    "unverified",
]

attach(
    __name__,
    {
        "hubbub_client.surveys.schedule": (
            "Enrolment",
            "MEMOISED",
            "Refusal",
            "asks_for",
            "due",
            "first_round",
            "last_closed_round",
            "joined_pin_versions",
            "is_static",
            "memoised_by",
            "memoised_coordinate",
            "decode_listed_surveys",
            "check_eligibility",
            "scheduled_answer_of",
            "scheduled_query",
            "scheduled_answers",
            "trusted",
        ),
        "hubbub_client.surveys.load": ("SurveyLoad", "answer_work", "survey_load"),
        "hubbub_client.surveys.stored_list": ("StoredList",),
        "hubbub_client.surveys.survey_lists": (
            "ListRefusal",
            "list_refusal",
            "newest",
            "opened",
            "pinned",
            "unverified",
        ),
    },
)
