"""A user's text where it enters another tool's language: a function for each of them."""

from typing import TYPE_CHECKING

from hubbub.lazy import attach

if TYPE_CHECKING:
    from hubbub_lab.texts.grammar import number_of, plain, sql_name, whole_of
    from hubbub_lab.texts.terminal import results, talk

__all__ = [
    "number_of",
    "plain",
    "results",
    "sql_name",
    "talk",
    "whole_of",
]

attach(
    __name__,
    {
        "hubbub_lab.texts.grammar": (
            "number_of",
            "plain",
            "sql_name",
            "whole_of",
        ),
        "hubbub_lab.texts.terminal": (
            "results",
            "talk",
        ),
    },
)
