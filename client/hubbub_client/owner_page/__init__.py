"""The owner's account of all that was sent, and the page that shows it."""

from typing import TYPE_CHECKING

from hubbub.lazy import attach

if TYPE_CHECKING:
    from hubbub_client.owner_page.account import Account, Asked, Part, Refused, account_of
    from hubbub_client.owner_page.descriptions import (
        asked,
        factor,
        fate,
        learned,
        mechanism,
        moment,
        overspent,
        progress,
        refused,
        schedule,
        symbol,
    )
    from hubbub_client.owner_page.history import sent_reports
    from hubbub_client.owner_page.page import OwnerPage

__all__ = [
    "Account",
    "Asked",
    "OwnerPage",
    "Part",
    "Refused",
    "account_of",
    "asked",
    "factor",
    "fate",
    "learned",
    "mechanism",
    "moment",
    "overspent",
    "progress",
    "refused",
    "schedule",
    "sent_reports",
    "symbol",
]

attach(
    __name__,
    {
        "hubbub_client.owner_page.account": (
            "Account",
            "Asked",
            "Part",
            "Refused",
            "account_of",
        ),
        "hubbub_client.owner_page.descriptions": (
            "asked",
            "factor",
            "fate",
            "learned",
            "mechanism",
            "moment",
            "overspent",
            "progress",
            "refused",
            "schedule",
            "symbol",
        ),
        "hubbub_client.owner_page.history": ("sent_reports",),
        "hubbub_client.owner_page.page": ("OwnerPage",),
    },
)
