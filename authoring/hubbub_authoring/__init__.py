"""From what an author asks for to the integers of a survey; never on a device."""

from typing import TYPE_CHECKING

from hubbub.lazy import attach

if TYPE_CHECKING:
    from hubbub_authoring import design, files, floor, mechanisms

__all__ = ["design", "files", "floor", "mechanisms"]

attach(
    __name__,
    {
        "hubbub_authoring.design": (),
        "hubbub_authoring.files": (),
        "hubbub_authoring.floor": (),
        "hubbub_authoring.mechanisms": (),
    },
)
