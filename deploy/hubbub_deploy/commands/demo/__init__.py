"""`hubbub demo`: the command, and the demonstration that it runs."""

from typing import TYPE_CHECKING

from hubbub.lazy import attach

if TYPE_CHECKING:
    from hubbub_deploy.commands.demo.demo import add_to

__all__ = ["add_to"]

attach(__name__, {"hubbub_deploy.commands.demo.demo": ("add_to",)})
