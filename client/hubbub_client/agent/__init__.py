"""The agent: enrol, answer, correct and close, on one device."""

from typing import TYPE_CHECKING

from hubbub.lazy import attach

if TYPE_CHECKING:
    from hubbub_client.agent.agent import Agent
    from hubbub_client.agent.async_agent import AsyncAgent
    from hubbub_client.agent.encoded_value import EncodedValues, channel_inputs, encode_many
    from hubbub_client.agent.policy import (
        MAX_LEDGER_BYTES,
        MAX_LEDGER_MEMORY,
        MAX_LEDGER_SLOTS,
        MAX_LEDGER_WORK,
        MAX_SLOTS,
        Policy,
    )
    from hubbub_client.agent.rounds import rounds_fit

__all__ = [
    "MAX_LEDGER_BYTES",
    "MAX_LEDGER_MEMORY",
    "MAX_LEDGER_SLOTS",
    "MAX_LEDGER_WORK",
    "MAX_SLOTS",
    "Agent",
    "AsyncAgent",
    "EncodedValues",
    "Policy",
    "channel_inputs",
    "encode_many",
    "rounds_fit",
]

attach(
    __name__,
    {
        "hubbub_client.agent.agent": ("Agent",),
        "hubbub_client.agent.async_agent": ("AsyncAgent",),
        "hubbub_client.agent.encoded_value": (
            "EncodedValues",
            "channel_inputs",
            "encode_many",
        ),
        "hubbub_client.agent.policy": (
            "MAX_LEDGER_BYTES",
            "MAX_LEDGER_MEMORY",
            "MAX_LEDGER_SLOTS",
            "MAX_LEDGER_WORK",
            "MAX_SLOTS",
            "Policy",
        ),
        "hubbub_client.agent.rounds": ("rounds_fit",),
    },
)
