"""The settings of a node that a file, the environment and the command line may give."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Final, Self

from hubbub_deploy.errors import DeployError

LEAST: Final[Mapping[str, float]] = {
    "port": 0,
    "partitions": 1,
    "grace_s": 1,
    "streams": 1,
    "client_streams": 1,
    "log_keep_s": 0,
    "log_keep_bytes": 0,
    "log_max_bytes": 0,
}
"""The least value of each number."""
MOST: Final[Mapping[str, float]] = {"port": 65_535, "partitions": 1_024}
"""The greatest value of a number that has one."""
KINDS: Final = {"int": "an integer", "float": "a number"}
"""The types of numbers, in words."""
WORDS: Final = {"dead_letter_payload": ("none", "whole")}
"""The values of settings that take a word."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeOptions:
    """The settings of a node beside those of its gateway.

    Attributes:
        host: Address to listen on.
        port: TCP port, 0 for any free one.
        partitions: Partitions of a new log; an existing one keeps its own number.
        grace_s: Seconds from a round's last possible report to its seal. It is the most, too, that a batch
            may take from admission to the log before its senders are told 503: 5 s is 250 lingers; below 1 a
            slow disk's fsync beside a linger would have a node refuse what it wrote.
        dead_letter_payload: Whether dead letters hold the bytes of their records: none or whole.
        streams: Pages with a stream of changes at once; the others poll.
        client_streams: Of these from one address, which behind a proxy is that of all pages.
        log_keep_s: Seconds that counted records of released rounds are kept, 0 for ever. Whoever may read the
            node's files learns from older records what no release says; without them a replay compares less.
        log_keep_bytes: Bytes of the log above which the oldest such records go, 0 for any number.
        log_max_bytes: Bytes of the log past which uploads get 503, 0 for any number. Seals are still written,
            so that rounds end and their records can go.

    Raises:
        DeployError: If a value has the wrong type or range.
    """

    host: str = "127.0.0.1"
    port: int = 8780
    partitions: int = 4
    grace_s: float = 5.0
    dead_letter_payload: str = "none"
    streams: int = 256
    client_streams: int = 32
    log_keep_s: float = 0.0
    log_keep_bytes: int = 0
    log_max_bytes: int = 0

    def __post_init__(self) -> None:
        for field in fields(NodeOptions):
            value = getattr(self, field.name)
            if field.type == "str":
                words = WORDS.get(field.name)
                rule = " or ".join(words) if words else "a text that is not empty"
                is_good = type(value) is str and (value in words if words else value != "")
            else:
                kinds = (int, float) if field.type == "float" else (int,)
                low, high = LEAST[field.name], MOST.get(field.name, math.inf)
                rule = f"{KINDS[str(field.type)]} of at least {low:g}" + (
                    f" and at most {high:g}" if high < math.inf else ""
                )
                is_good = type(value) in kinds and math.isfinite(value) and low <= value <= high
            if not is_good:
                raise DeployError(f"{field.name} must be {rule}, got {value!r}")
        if 0 < self.log_max_bytes <= self.log_keep_bytes:
            raise DeployError(
                f"log_keep_bytes must be below log_max_bytes, which is {self.log_max_bytes}, "
                f"got {self.log_keep_bytes}"
            )

    @classmethod
    def from_mapping(cls, values: Mapping[str, object]) -> Self:
        """Return the settings of a table whose keys are known.

        Raises:
            DeployError: If a value has the wrong type or range.
        """
        return cls(**values)  # type: ignore[arg-type]  # __post_init__ checks every type
