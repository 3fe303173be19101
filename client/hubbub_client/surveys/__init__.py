"""The lists of surveys that a device takes from a collector."""

from typing import TYPE_CHECKING

from hubbub.lazy import attach

if TYPE_CHECKING:
    from hubbub_client.surveys.schedule import (
        PINNED,
        Enrolment,
        Refusal,
        asks_for,
        due,
        first_round,
        floor_at,
        generation_of,
        is_static,
        pinned_by,
        pinned_coordinate,
        readable,
        screen,
        slot_of,
        slot_query,
        slots,
        trusted,
    )
    from hubbub_client.surveys.stored_list import StoredList
    from hubbub_client.surveys.survey_lists import ListRefusal, judge, newest, opened, pinned, unverified

__all__ = [
    "PINNED",
    "Enrolment",
    "ListRefusal",
    "Refusal",
    "StoredList",
    "asks_for",
    "due",
    "first_round",
    "floor_at",
    "generation_of",
    "is_static",
    "judge",
    "newest",
    "opened",
    "pinned",
    "pinned_by",
    "pinned_coordinate",
    "readable",
    "screen",
    "slot_of",
    "slot_query",
    "slots",
    "trusted",
    "unverified",
]

attach(
    __name__,
    {
        "hubbub_client.surveys.schedule": (
            "Enrolment",
            "PINNED",
            "Refusal",
            "asks_for",
            "due",
            "first_round",
            "floor_at",
            "generation_of",
            "is_static",
            "pinned_by",
            "pinned_coordinate",
            "readable",
            "screen",
            "slot_of",
            "slot_query",
            "slots",
            "trusted",
        ),
        "hubbub_client.surveys.stored_list": ("StoredList",),
        "hubbub_client.surveys.survey_lists": (
            "ListRefusal",
            "judge",
            "newest",
            "opened",
            "pinned",
            "unverified",
        ),
    },
)
