"""`hubbub topic`: the command, and the copy of a node's log into the topic that it makes."""

from typing import TYPE_CHECKING

from hubbub.lazy import attach

if TYPE_CHECKING:
    from hubbub_deploy.commands.topic.topic import add_to

__all__ = ["add_to"]

attach(__name__, {"hubbub_deploy.commands.topic.topic": ("add_to",)})
