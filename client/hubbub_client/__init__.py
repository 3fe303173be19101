"""The device agent: perturb, keep the ledger, send."""

from typing import TYPE_CHECKING

from hubbub.lazy import attach

if TYPE_CHECKING:
    from hubbub.survey import Attribute
    from hubbub_client.agent.agent import Agent
    from hubbub_client.agent.async_agent import AsyncAgent
    from hubbub_client.agent.policy import Policy
    from hubbub_client.errors import (
        AttributeRefused,
        BudgetFixed,
        ClientError,
        LedgerCorrupt,
        LedgerError,
        LedgerForeign,
        LedgerLocked,
        LedgerMissing,
        LedgerTooNew,
        ListRefused,
        TransportError,
    )
    from hubbub_client.ledger.file import Counter
    from hubbub_client.owner_page.account import Account, Asked, Part, Refused
    from hubbub_client.owner_page.page import OwnerPage
    from hubbub_client.surveys.schedule import Enrolment
    from hubbub_client.tokens.fetcher import Tokens
    from hubbub_client.tokens.issuer import TokenIssuer
    from hubbub_client.upload.outcomes import (
        Answer,
        Correction,
        EnrolmentStatus,
        SentReport,
        Status,
        UploadOutcome,
    )
    from hubbub_client.upload.uploader import Limits

__all__ = [
    "Account",
    "Agent",
    "Answer",
    "Asked",
    "AsyncAgent",
    "Attribute",
    "AttributeRefused",
    "BudgetFixed",
    "ClientError",
    "Correction",
    "Counter",
    "Enrolment",
    "EnrolmentStatus",
    "LedgerCorrupt",
    "LedgerError",
    "LedgerForeign",
    "LedgerLocked",
    "LedgerMissing",
    "LedgerTooNew",
    "Limits",
    "ListRefused",
    "OwnerPage",
    "Part",
    "Policy",
    "Refused",
    "SentReport",
    "Status",
    "TokenIssuer",
    "Tokens",
    "TransportError",
    "UploadOutcome",
]

attach(
    __name__,
    {
        "hubbub.survey": ("Attribute",),
        "hubbub_client.agent.agent": ("Agent",),
        "hubbub_client.agent.async_agent": ("AsyncAgent",),
        "hubbub_client.agent.policy": ("Policy",),
        "hubbub_client.errors": (
            "AttributeRefused",
            "BudgetFixed",
            "ClientError",
            "TransportError",
            "LedgerCorrupt",
            "LedgerError",
            "LedgerForeign",
            "LedgerLocked",
            "LedgerMissing",
            "LedgerTooNew",
            "ListRefused",
        ),
        "hubbub_client.ledger.file": ("Counter",),
        "hubbub_client.owner_page.account": (
            "Account",
            "Asked",
            "Part",
            "Refused",
        ),
        "hubbub_client.owner_page.page": ("OwnerPage",),
        "hubbub_client.surveys.schedule": ("Enrolment",),
        "hubbub_client.tokens.fetcher": ("Tokens",),
        "hubbub_client.tokens.issuer": ("TokenIssuer",),
        "hubbub_client.upload.outcomes": (
            "Answer",
            "Correction",
            "EnrolmentStatus",
            "SentReport",
            "Status",
            "UploadOutcome",
        ),
        "hubbub_client.upload.uploader": ("Limits",),
    },
)
