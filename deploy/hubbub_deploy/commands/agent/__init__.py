"""`hubbub agent`: the command, what it answers, and what its owner may know and say."""

from typing import TYPE_CHECKING

from hubbub.lazy import attach

if TYPE_CHECKING:
    from hubbub_deploy.commands.agent.agent import add_to
    from hubbub_deploy.commands.agent.answer import value_of

__all__ = ["add_to", "value_of"]

attach(
    __name__,
    {
        "hubbub_deploy.commands.agent.agent": ("add_to",),
        "hubbub_deploy.commands.agent.answer": ("value_of",),
    },
)
