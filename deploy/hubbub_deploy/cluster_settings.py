"""The settings of a cluster: one file for all of its processes."""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Final, Self, cast

from hubbub_aggregator import runners
from hubbub_aggregator.release import DEFAULT_GRACE_S
from hubbub_collector import GatewaySettings
from hubbub_deploy.errors import DeployError
from hubbub_topic import LogError
from hubbub_topic.kafka import DEFAULT_REBUILD_S, MECHANISMS, Brokers, BrokerSecurity, Mechanism

ADDRESSES: Final = {"kafka": "HUBBUB_KAFKA", "redis": "HUBBUB_REDIS"}
"""Settings that the environment may give in place of the file, by key."""

PASSWORD_VARIABLE: Final = "HUBBUB_KAFKA_PASSWORD"  # noqa: S105 - a name
"""The environment variable of the password for Kafka."""

# Half of it for delivery, half for a collector's clock that is behind: clocks that keep time differ by less.
LEAST_GRACE_S: Final = 10.0
# The rule for values of each type, in words.
_RULES: Final = {
    "str": "a text that is not empty",
    "int": "a whole number above 0",
    "float": "a number above 0",
}
# Settings that take one of a few words, the default first.
_WORDS: Final = {
    "dead_letter_payload": ("none", "whole"),
    "event_loop": ("asyncio", "uvloop"),
    "kafka_mechanism": MECHANISMS,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSettings:
    """The settings of one cluster: one file for all of its processes.

    Attributes:
        kafka: Brokers, as host:port,host:port.
        topic: The topic of reports.
        kafka_ca: File of the authorities that sign the brokers' certificates (PEM): Kafka is reached by TLS.
        kafka_certificate: File of these processes' own certificate (PEM), where brokers ask for one.
        kafka_key: File of its secret key (PEM).
        kafka_user: Name for SASL; every kind of process should have one of its own, for its rights.
        kafka_password_file: File of its password; HUBBUB_KAFKA_PASSWORD takes its place.
        kafka_mechanism: "SCRAM-SHA-512", "SCRAM-SHA-256" or "PLAIN".
        redis: The Redis that keeps the counts, as redis://host:port/database.
        namespace: What its keys begin with: several clusters may share a Redis.
        group: Aggregators of one group share the partitions.
        rebuild_s: Seconds of records that the topic's retention must keep.
        session_s: Seconds after which a silent aggregator's partitions go to others.
        grace_s: Seconds between a round's last possible report and its seal. Collectors answer for no batch
            that took half of it, or ten seconds; the rest is for the difference of the servers' clocks.
        dead_letter_payload: Whether a dead letter holds the record's bytes: "none" or "whole".
        event_loop: What drives an aggregator: "asyncio" or "uvloop".
    """

    kafka: str
    topic: str = "reports"
    kafka_ca: str | None = None
    kafka_certificate: str | None = None
    kafka_key: str | None = None
    kafka_user: str | None = None
    kafka_password_file: str | None = None
    kafka_mechanism: str = MECHANISMS[0]
    redis: str
    namespace: str = "hubbub"
    group: str = "hubbub-aggregator"
    rebuild_s: int = DEFAULT_REBUILD_S
    session_s: float = runners.DEFAULT_SESSION_S
    grace_s: float = DEFAULT_GRACE_S
    dead_letter_payload: str = "none"
    event_loop: str = "asyncio"

    @property
    def brokers(self) -> Brokers:
        """The brokers' addresses with what they ask for.

        Raises:
            DeployError: If a file cannot be read, or parts that belong together are not given together.
        """
        password = os.environ.get(PASSWORD_VARIABLE) or None
        if self.kafka_user is not None and password is None and self.kafka_password_file is not None:
            try:
                password = Path(self.kafka_password_file).read_text(encoding="utf-8").strip()
            except (OSError, UnicodeDecodeError) as error:
                raise DeployError(
                    f"kafka_password_file {self.kafka_password_file} cannot be read: {type(error).__name__}"
                ) from None
        files = (self.kafka_ca, self.kafka_certificate, self.kafka_key)
        ca, certificate, key = (None if name is None else Path(name) for name in files)
        try:
            asked = BrokerSecurity(
                ca=ca,
                certificate=certificate,
                key=key,
                user=self.kafka_user,
                password=None if self.kafka_user is None else password,
                mechanism=cast(Mechanism, self.kafka_mechanism),
            )
        except LogError as error:
            raise DeployError(str(error)) from None
        return Brokers(self.kafka, asked)

    @property
    def gateway(self) -> GatewaySettings:
        """A collector's settings: at most half the grace for delivery, the rest for clocks that differ."""
        usual = GatewaySettings()
        return replace(usual, delivery_s=min(usual.delivery_s, self.grace_s / 2))

    @classmethod
    def load(cls, path: Path, environment: Mapping[str, str] = os.environ) -> Self:
        """Return the settings in a TOML file.

        The environment variables HUBBUB_KAFKA and HUBBUB_REDIS replace the file's two addresses.

        Only addresses can differ between processes of one cluster, so only these two are read from the
        environment. An empty variable counts as one that is not set.

        Raises:
            DeployError: If the file cannot be read, or a key is missing, unknown or has the wrong type.
        """
        try:
            values = tomllib.loads(path.read_text(encoding="utf-8"))
        except OSError as error:
            raise DeployError(f"{path}: must be a readable file, got {error.strerror!r}") from error
        except ValueError as error:
            raise DeployError(f"{path}: must be TOML, got {str(error)!r}") from error
        addresses = {key: found for key, name in ADDRESSES.items() if (found := environment.get(name))}
        try:
            return cls.from_mapping(values | addresses)
        except DeployError as error:
            raise DeployError(f"{path}: {error}") from None

    @classmethod
    def from_mapping(cls, values: Mapping[str, object]) -> Self:
        """Return the settings of a parsed file.

        Raises:
            DeployError: If a key is missing, unknown or has the wrong type.
        """
        known = {field.name: str(field.type).removesuffix(" | None") for field in fields(cls)}
        if unknown := sorted(values.keys() - known.keys()):
            raise DeployError(f"settings must be among {', '.join(known)}, got {', '.join(unknown)}")
        if missing := sorted({"kafka", "redis"} - values.keys()):
            raise DeployError(f"{' and '.join(missing)} must be given")
        kinds: dict[str, tuple[type, ...]] = {"str": (str,), "int": (int,), "float": (int, float)}
        for key, value in values.items():
            empty = value == "" or (isinstance(value, int | float) and not 0 < value < 2**40)
            if type(value) not in kinds[known[key]] or empty:
                # An address may hold a password.
                got = "something else" if key in ADDRESSES else json.dumps(value, default=str)
                raise DeployError(f"{key} must be {_RULES[known[key]]}, got {got}")
        grace_s = values.get("grace_s", DEFAULT_GRACE_S)
        if isinstance(grace_s, int | float) and grace_s < LEAST_GRACE_S:
            raise DeployError(f"grace_s must be at least {LEAST_GRACE_S:g}, got {grace_s!r}")
        for key, words in _WORDS.items():
            if values.get(key, words[0]) not in words:
                raise DeployError(f"{key} must be {' or '.join(words)}, got {values[key]!r}")
        return cls(**values)  # type: ignore[arg-type]  # every type was checked
