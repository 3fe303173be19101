from hubbub_client.ledger.file import Counter as Counter
from hubbub_client.ledger.ledger import Ledger as Ledger
from hubbub_client.ledger.process_lock import ProcessLock as ProcessLock
from hubbub_client.ledger.stored import (
    SpentBudget as SpentBudget,
    StoredAnswer as StoredAnswer,
    StoredAttribute as StoredAttribute,
    StoredEnrolment as StoredEnrolment,
    StoredRefusal as StoredRefusal,
    StoredValue as StoredValue,
)
from hubbub_client.ledger.transcript import TranscriptEntry as TranscriptEntry
