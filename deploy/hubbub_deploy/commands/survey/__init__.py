"""`hubbub survey`: the verbs that begin, check, design, compile and sign surveys."""

from typing import TYPE_CHECKING

from hubbub.lazy import attach

if TYPE_CHECKING:
    from hubbub_deploy.commands.survey.survey import add_to

__all__ = ["add_to"]

attach(__name__, {"hubbub_deploy.commands.survey.survey": ("add_to",)})
