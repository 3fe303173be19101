from hubbub.survey import Attribute as Attribute
from hubbub_client.agent.agent import Agent as Agent
from hubbub_client.agent.async_agent import AsyncAgent as AsyncAgent
from hubbub_client.agent.policy import Policy as Policy
from hubbub_client.errors import (
    AttributeRefusedError as AttributeRefusedError,
    BudgetFixedError as BudgetFixedError,
    ClientError as ClientError,
    LedgerCorruptError as LedgerCorruptError,
    LedgerError as LedgerError,
    LedgerForeignError as LedgerForeignError,
    LedgerLockedError as LedgerLockedError,
    LedgerMissingError as LedgerMissingError,
    LedgerTooNewError as LedgerTooNewError,
    ListRefusedError as ListRefusedError,
    TransportError as TransportError,
)
from hubbub_client.ledger.file import Counter as Counter
from hubbub_client.owner_page.account import (
    Account as Account,
    Asked as Asked,
    Part as Part,
    Refused as Refused,
)
from hubbub_client.owner_page.page import OwnerPage as OwnerPage
from hubbub_client.surveys.schedule import Enrolment as Enrolment
from hubbub_client.tokens.fetcher import Tokens as Tokens
from hubbub_client.tokens.issuer import TokenIssuer as TokenIssuer
from hubbub_client.upload.outcomes import (
    Answer as Answer,
    Correction as Correction,
    EnrolmentStatus as EnrolmentStatus,
    AnswerCheck as AnswerCheck,
    SentReport as SentReport,
    Status as Status,
    UploadOutcome as UploadOutcome,
)
from hubbub_client.upload.uploader import Limits as Limits
