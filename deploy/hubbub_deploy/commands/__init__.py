"""The commands of `hubbub`, one file each."""

from typing import TYPE_CHECKING

from hubbub.lazy import attach

if TYPE_CHECKING:
    from hubbub_deploy.commands.arguments import add_skip, port, positive, seconds, whole
    from hubbub_deploy.commands.demo import DemoSettings, run
    from hubbub_deploy.commands.design import DesignSettings
    from hubbub_deploy.commands.replay import ReplaySettings

__all__ = [
    "DemoSettings",
    "DesignSettings",
    "ReplaySettings",
    "add_skip",
    "port",
    "positive",
    "run",
    "seconds",
    "whole",
]

attach(
    __name__,
    {
        "hubbub_deploy.commands.arguments": (
            "add_skip",
            "port",
            "positive",
            "seconds",
            "whole",
        ),
        "hubbub_deploy.commands.demo": (
            "DemoSettings",
            "run",
        ),
        "hubbub_deploy.commands.design": ("DesignSettings",),
        "hubbub_deploy.commands.replay": ("ReplaySettings",),
    },
)
