"""`hubbub evaluate`: mechanisms, epsilons, sizes, data sets and faults, measured beside exact errors."""

from typing import TYPE_CHECKING

from hubbub.lazy import attach

if TYPE_CHECKING:
    from hubbub_deploy.commands.evaluate.evaluate import add_to

__all__ = ["add_to"]

attach(__name__, {"hubbub_deploy.commands.evaluate.evaluate": ("add_to",)})
