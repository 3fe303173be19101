"""The device agent: perturb, keep the ledger, send; and a fleet of simulated devices."""

from hubbub.domain import Attribute
from hubbub_client.agent import Agent
from hubbub_client.errors import (
    AttributeRefused,
    BudgetFixed,
    ClientError,
    CollectorError,
    LedgerCorrupt,
    LedgerError,
    LedgerLocked,
    LedgerTooNew,
)
from hubbub_client.fleet import Column, Fleet, FleetEnrolment
from hubbub_client.fleet_upload import UploadCounts
from hubbub_client.outcomes import Answer, EnrolmentStatus, Status, UploadOutcome
from hubbub_client.schedule import Enrolment
from hubbub_client.uploader import Limits

__all__ = [
    "Agent",
    "Answer",
    "Attribute",
    "AttributeRefused",
    "BudgetFixed",
    "ClientError",
    "CollectorError",
    "Column",
    "Enrolment",
    "EnrolmentStatus",
    "Fleet",
    "FleetEnrolment",
    "LedgerCorrupt",
    "LedgerError",
    "LedgerLocked",
    "LedgerTooNew",
    "Limits",
    "Status",
    "UploadCounts",
    "UploadOutcome",
]
