"""`hubbub delete`: the command, and what it deletes of a node and of a cluster."""

from typing import TYPE_CHECKING

from hubbub.lazy import attach

if TYPE_CHECKING:
    from hubbub_deploy.commands.delete.delete import add_to

__all__ = ["add_to"]

attach(__name__, {"hubbub_deploy.commands.delete.delete": ("add_to",)})
