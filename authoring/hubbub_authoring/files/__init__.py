"""The way from a TOML file to a compiled survey; never on a device."""

from typing import TYPE_CHECKING

from hubbub.lazy import attach

if TYPE_CHECKING:
    from hubbub_authoring.files.compile import TABLE_MECHANISMS
    from hubbub_authoring.files.template import Draft, DraftAttribute, DraftCategory, template
    from hubbub_authoring.files.text import survey_text
    from hubbub_authoring.files.toml import decode, parse, read

__all__ = [
    "TABLE_MECHANISMS",
    "Draft",
    "DraftAttribute",
    "DraftCategory",
    "decode",
    "parse",
    "read",
    "survey_text",
    "template",
]

attach(
    __name__,
    {
        "hubbub_authoring.files.compile": ("TABLE_MECHANISMS",),
        "hubbub_authoring.files.template": (
            "Draft",
            "DraftAttribute",
            "DraftCategory",
            "template",
        ),
        "hubbub_authoring.files.text": ("survey_text",),
        "hubbub_authoring.files.toml": (
            "decode",
            "parse",
            "read",
        ),
    },
)
