"""`hubbub replay`: the command, and what it does with a CSV and with a log."""

from typing import TYPE_CHECKING

from hubbub.lazy import attach

if TYPE_CHECKING:
    from hubbub_deploy.commands.replay.replay import add_to

__all__ = ["add_to"]

attach(__name__, {"hubbub_deploy.commands.replay.replay": ("add_to",)})
