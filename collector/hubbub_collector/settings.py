"""The gateway's settings: one frozen value, every default with its reason."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Final, Self

from hubbub_collector.errors import SettingsError
from hubbub_collector.origins import origins

MOST: Final = 2**40
"""The greatest value of any setting: what is above it was meant as infinity."""
_KINDS: Final = {"int": "an integer", "float": "a number"}
_FROM_ZERO: Final = frozenset({"linger_s", "permit_rate", "metrics_s"})


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewaySettings:
    """The settings by which the gateway gathers, bounds and answers uploads.

    Attributes:
        linger_s: Seconds that the first upload of a batch waits for company. 0.02 costs a device nothing that
            it notices and turns thousands of uploads into one fsync; longer hides an upload among more.
        linger_uploads: Uploads of a batch that are company enough: it waits no further. Where
            many come at once, the server would only be idle; 256 hide each other, and share one append.
        max_upload_bytes: Largest body of one upload, in bytes. 64 KiB is 1,700 reports; a device sends 8.
        max_reports: Most reports in one upload: what 64 KiB hold in their shortest form.
        max_pending_bytes: Bytes of all uploads that wait for the log; past it new ones get 429. In memory an
            upload takes some ten times its bytes: 8 MiB bound the process to about 100 MiB. Requests
            that have not come whole may hold as many again, and 1 MiB; past it an old one is cut off.
        max_batch_reports: Reports in one batch: what one append, and the answer to all of them, waits for.
        max_batch_bytes: Bytes of one batch; the upload that reaches them is still taken whole. Sets, and
            refusals of many different rounds, take far more of them than numbers do. Even if all falls into
            one partition, 1 MiB and an upload stay below the 2 MiB that a Kafka topic takes as one message.
            A report that is not judged yet counts as 100, the most that it can take.
        body_timeout_s: Seconds in which a body must have arrived, so that a slow sender cannot sit on bytes
            that others need; and a request's head before it, so that silent ones cannot sit on connections.
        max_wait_s: Seconds that an upload waits, after its linger, where more waits than one batch takes;
            past it the answer is 503, and it is neither judged nor written. After an overload, who sends now
            waits for that long, and not for uploads whose senders have given them up.
        delivery_s: Seconds from the first judgement of a batch until it must lie in the log, by a clock that
            runs while the machine sleeps; what took longer is answered 503: a seal may have come before it.
            10 is what Kafka's producer takes before it gives a record up; less than the sealer's grace.
        retry_after_s: Whole seconds in the Retry-After of 429 and 503. A linger clears a backlog, and devices
            add jitter, so the least that the header can say is enough.
        max_connections: Connections open at once; beyond, the one idle longest is closed. Fewer where the
            process may not open as many files.
        permit_rate: Reports a second that one permit lets in, 0 for any number: the password, each issuer
            whose tokens are taken, or everybody where nothing is asked for. Ten seconds' worth may come at
            once; past it uploads get 429 with the seconds to wait. A leaked password, or an issuer that signs
            for anybody, then adds no more than this.
        allowed_origins: Origins of the web pages that may be devices, exact and with commas; "" for none.
            Uploads of any other page are refused, since a website could make its visitors' browsers send.
        metrics_s: Seconds for which what /metrics says stays as it is, 0 for none. Counters that move with
            each upload would tell whoever polls them when a single device sent; the log knows its minute.
        shutdown_s: Whole seconds that open requests get to finish when the process is asked to stop.
    """

    linger_s: float = 0.02
    linger_uploads: int = 256
    max_upload_bytes: int = 64 * 2**10
    max_reports: int = 1724
    max_pending_bytes: int = 8 * 2**20
    max_batch_reports: int = 32_768
    max_batch_bytes: int = 2**20
    body_timeout_s: float = 10.0
    max_wait_s: float = 2.0
    delivery_s: float = 10.0
    retry_after_s: int = 1
    max_connections: int = 8192
    permit_rate: float = 0.0
    allowed_origins: str = ""
    metrics_s: float = 60.0
    shutdown_s: int = 10

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if field.type == "str":
                origins(value)
                continue
            kinds = (int, float) if field.type == "float" else (int,)
            if type(value) not in kinds:
                raise SettingsError(f"{field.name} must be {_KINDS[str(field.type)]}, got {value!r}")
            low = self.least(field.name)
            if not low <= value <= MOST:
                raise SettingsError(f"{field.name} must be at least {low} and finite, got {value!r}")
        if self.linger_s > self.shutdown_s / 2:
            # An upload that waits when the process is asked to stop must still be written and answered.
            raise SettingsError(f"linger_s must be at most half of shutdown_s, got {self.linger_s}")
        if self.max_pending_bytes < self.max_upload_bytes:
            raise SettingsError(
                f"max_pending_bytes must be at least max_upload_bytes, which is {self.max_upload_bytes}, "
                f"got {self.max_pending_bytes}"
            )

    @classmethod
    def least(cls, name: str) -> float:
        """Return the least value that a setting may have; MOST is the greatest of all; texts have neither."""
        if cls.__annotations__[name] == "str":
            return -math.inf
        if name in _FROM_ZERO:
            return 0
        return 1 if cls.__annotations__[name] == "int" else 1e-3

    @classmethod
    def from_mapping(cls, values: Mapping[str, object]) -> Self:
        """Return the settings of a parsed file.

        Raises:
            SettingsError: If a key is unknown, or a value has the wrong type or range.
        """
        known = {field.name for field in fields(cls)}
        if unknown := sorted(set(values) - known):
            raise SettingsError(
                f"settings must be among {', '.join(sorted(known))}, got {', '.join(unknown)}"
            )
        return cls(**values)  # type: ignore[arg-type]  # __post_init__ checks every type
