from hubbub_client.agent.encoded_value import (
    EncodedValues as EncodedValues,
    channel_inputs as channel_inputs,
    encode_many as encode_many,
)
from hubbub_client.agent.policy import (
    MAX_LEDGER_BYTES as MAX_LEDGER_BYTES,
    MAX_LEDGER_MEMORY as MAX_LEDGER_MEMORY,
    MAX_LEDGER_SLOTS as MAX_LEDGER_SLOTS,
    MAX_LEDGER_WORK as MAX_LEDGER_WORK,
    MAX_SLOTS as MAX_SLOTS,
)
from hubbub_client.agent.enrolments import round_units as round_units, rounds_fit as rounds_fit
