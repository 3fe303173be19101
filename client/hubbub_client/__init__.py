"""The device agent: perturb, keep the ledger, send; and a fleet of simulated devices."""

from hubbub.domain import Attribute
from hubbub_client.agent import Agent
from hubbub_client.async_agent import AsyncAgent
from hubbub_client.errors import (
    AttributeRefused,
    BudgetFixed,
    ClientError,
    CollectorError,
    LedgerCorrupt,
    LedgerError,
    LedgerForeign,
    LedgerLocked,
    LedgerMissing,
    LedgerTooNew,
    ListRefused,
)
from hubbub_client.fleet import Column, Fleet, FleetEnrolment
from hubbub_client.fleet_upload import UploadCounts
from hubbub_client.ledger_file import Counter
from hubbub_client.outcomes import (
    Answer,
    Correction,
    EnrolmentStatus,
    SentReport,
    Status,
    UploadOutcome,
)
from hubbub_client.owner import Account, Asked, Part, Refused
from hubbub_client.page import OwnerPage
from hubbub_client.policy import Policy
from hubbub_client.schedule import Enrolment
from hubbub_client.uploader import Limits

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
    "CollectorError",
    "Column",
    "Correction",
    "Counter",
    "Enrolment",
    "EnrolmentStatus",
    "Fleet",
    "FleetEnrolment",
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
    "UploadCounts",
    "UploadOutcome",
]
