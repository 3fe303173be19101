"""The settings of processes: one table for file, environment and command line."""

from typing import TYPE_CHECKING

from hubbub.lazy import attach

if TYPE_CHECKING:
    from hubbub_deploy.settings.options import NodeOptions
    from hubbub_deploy.settings.sources import (
        Origin,
        Sourced,
        gather,
        node_settings,
        read_file,
        refuse_unknown_variables,
    )
    from hubbub_deploy.settings.table import GATEWAY, NODE, Setting, markdown

__all__ = [
    "GATEWAY",
    "NODE",
    "NodeOptions",
    "Origin",
    "Setting",
    "Sourced",
    "gather",
    "markdown",
    "node_settings",
    "read_file",
    "refuse_unknown_variables",
]

attach(
    __name__,
    {
        "hubbub_deploy.settings.options": ("NodeOptions",),
        "hubbub_deploy.settings.sources": (
            "Origin",
            "Sourced",
            "gather",
            "node_settings",
            "read_file",
            "refuse_unknown_variables",
        ),
        "hubbub_deploy.settings.table": ("GATEWAY", "NODE", "Setting", "markdown"),
    },
)
