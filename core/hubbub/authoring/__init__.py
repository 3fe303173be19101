"""The way from a TOML file to a compiled survey; never on a device."""

from typing import TYPE_CHECKING

from hubbub.lazy import attach

if TYPE_CHECKING:
    from hubbub.authoring.compile import TABLE_MECHANISMS
    from hubbub.authoring.toml import MAX_FILE_BYTES, parse, read, read_compiled

__all__ = [
    "MAX_FILE_BYTES",
    "TABLE_MECHANISMS",
    "parse",
    "read",
    "read_compiled",
]

attach(
    __name__,
    {
        "hubbub.authoring.compile": ("TABLE_MECHANISMS",),
        "hubbub.authoring.toml": (
            "MAX_FILE_BYTES",
            "parse",
            "read",
            "read_compiled",
        ),
    },
)
