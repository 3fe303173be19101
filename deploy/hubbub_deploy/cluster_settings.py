"""The settings of a cluster: one file for all of its processes."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from pathlib import Path
from typing import Final, Self, cast

from hubbub.errors import ParameterError
from hubbub.small_file import read_small, unreadable
from hubbub.survey import public_key, public_text
from hubbub_aggregator import runners
from hubbub_aggregator.counting import SealRules, SignSeal, seal_signer
from hubbub_aggregator.release import DEFAULT_GRACE_S
from hubbub_collector import CollectorError, GatewaySettings
from hubbub_deploy.errors import DeployError
from hubbub_deploy.files import load_signing_key
from hubbub_deploy.settings import GATEWAY, Sourced, gather, read_file, refuse_unknown_variables
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
    "id_table": ("auto", "numpy", "compiled"),
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
        seal_keys: Public keys of which one must have signed each seal, from `hubbub survey keygen`, with
            commas between them; none: every seal is taken.
        seal_key_file: File of the dashboard's secret key; no other process should be able to read it.
        seals_signed_since: A time, as 2026-12-01T00:00:00Z: rounds that end before it may have seals without
            a signature, from before there were keys.
        redis: The Redis that keeps the counts, as redis://host:port/database.
        namespace: What its keys begin with: several clusters may share a Redis.
        group: Aggregators of one group share the partitions.
        rebuild_s: Seconds of records that the topic's retention must keep.
        session_s: Seconds after which a silent aggregator's partitions go to others.
        grace_s: Seconds between a round's last possible report and its seal. Collectors answer for no batch
            that took half of it, or ten seconds; the rest is for the difference of the servers' clocks.
        dead_letter_payload: Whether a dead letter holds the record's bytes: "none" or "whole".
        event_loop: What drives an aggregator: "asyncio" or "uvloop".
        id_table: What an aggregator remembers ids in: "numpy", "compiled", or "auto": compiled where numba is
            installed.
        limits: Bounds and waits of its collectors, which stand beside the keys above in the file.
    """

    kafka: str
    topic: str = "reports"
    kafka_ca: str | None = None
    kafka_certificate: str | None = None
    kafka_key: str | None = None
    kafka_user: str | None = None
    kafka_password_file: str | None = None
    kafka_mechanism: str = MECHANISMS[0]
    seal_keys: str | None = None
    seal_key_file: str | None = None
    seals_signed_since: str | None = None
    redis: str
    namespace: str = "hubbub"
    group: str = "hubbub-aggregator"
    rebuild_s: int = DEFAULT_REBUILD_S
    session_s: float = runners.DEFAULT_SESSION_S
    grace_s: float = DEFAULT_GRACE_S
    dead_letter_payload: str = "none"
    event_loop: str = "asyncio"
    id_table: str = "auto"
    limits: GatewaySettings = field(default_factory=GatewaySettings)

    @property
    def brokers(self) -> Brokers:
        """The brokers' addresses with what they ask for.

        Raises:
            DeployError: If a file cannot be read, or parts that belong together are not given together.
        """
        password = os.environ.get(PASSWORD_VARIABLE) or None
        if self.kafka_user is not None and password is None and self.kafka_password_file is not None:
            try:
                password = read_small(Path(self.kafka_password_file)).decode("utf-8").strip()
            except (OSError, UnicodeDecodeError) as error:
                raise DeployError(
                    f"kafka_password_file {self.kafka_password_file} cannot be read: {unreadable(error)}"
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
    def seal_rules(self) -> SealRules | None:
        """The rule by which a seal is the dashboard's, None where every seal is taken.

        Raises:
            DeployError: If a key or the time cannot be read, or the time is given without keys.
        """
        if self.seal_keys is None:
            if self.seals_signed_since is not None:
                raise DeployError("seals_signed_since must come with seal_keys")
            return None
        since_s = 0
        try:
            if self.seals_signed_since is not None:
                since = datetime.fromisoformat(self.seals_signed_since)
                if since.tzinfo is None:
                    raise ValueError
                since_s = int(since.timestamp())
            keys = tuple(public_key(text.strip()) for text in self.seal_keys.split(","))
        except ParameterError as error:
            raise DeployError(f"seal_keys: {error}") from None
        except ValueError:
            raise DeployError(
                "seals_signed_since must be a time such as 2026-12-01T00:00:00Z, "
                f"got {self.seals_signed_since!r}"
            ) from None
        return SealRules(keys, since_s)

    @property
    def seal_signer(self) -> SignSeal | None:
        """The dashboard's way to sign seals, None where they are not signed.

        Raises:
            DeployError: If the key cannot be read, is none of `seal_keys`, or is missing.
        """
        rules = self.seal_rules
        if self.seal_key_file is None:
            if rules is not None:
                raise DeployError(
                    "seal_key_file must be given where seal_keys are: nobody would take its seals"
                )
            return None
        key = load_signing_key(Path(self.seal_key_file))
        if rules is None or key.public_key().public_bytes_raw() not in rules.keys:
            raise DeployError(
                f"seal_keys must have the public key of {self.seal_key_file}, {public_text(key)}"
            )
        return seal_signer(key)

    @property
    def gateway(self) -> GatewaySettings:
        """A collector's settings: at most half the grace for delivery, the rest for clocks that differ."""
        return replace(self.limits, delivery_s=min(self.limits.delivery_s, self.grace_s / 2))

    @classmethod
    def load(
        cls,
        path: Path,
        environment: Mapping[str, str] = os.environ,
        flags: Mapping[str, object] | None = None,
    ) -> Self:
        """Return the settings in a TOML file, and what environment and command line put in their place.

        Only addresses and a collector's limits can differ between processes of one cluster, so only these
        are read from the environment. An empty variable counts as one that is not set.

        Args:
            path: The file.
            environment: The environment.
            flags: Limits that the command line gives; None as a value for one that it does not.

        Raises:
            DeployError: If the file cannot be read, a key is missing, unknown or has the wrong type, or a
                variable that begins with HUBBUB_ is unknown.
        """
        return cls.sourced(path, environment, flags)[0]

    @classmethod
    def sourced(
        cls,
        path: Path,
        environment: Mapping[str, str] = os.environ,
        flags: Mapping[str, object] | None = None,
    ) -> tuple[Self, Sourced]:
        """Do as `load`, and return where each value came from, too."""
        refuse_unknown_variables(environment)
        file = read_file(path)
        found = gather(GATEWAY, path=path, file=file, environment=environment, flags=flags or {})
        for key in file.keys() - found.values.keys():
            found.values[key], found.origins[key] = file[key], str(path)
        for key, name in ADDRESSES.items():
            if address := environment.get(name):
                found.values[key], found.origins[key] = address, name
        try:
            return cls.from_mapping(found.values), found
        except DeployError as error:
            raise DeployError(f"{path}: {error}") from None

    @classmethod
    def from_mapping(cls, values: Mapping[str, object]) -> Self:
        """Return the settings of a parsed file.

        Raises:
            DeployError: If a key is missing, unknown or has the wrong type.
        """
        known = {each.name: str(each.type).removesuffix(" | None") for each in fields(cls)}
        del known["limits"]
        limits = {row.key: values[row.key] for row in GATEWAY if row.key in values}
        if unknown := sorted(values.keys() - known.keys() - limits.keys()):
            raise DeployError(
                f"settings must be among {', '.join(known)} and a gateway's, got {', '.join(unknown)}"
            )
        values = {key: value for key, value in values.items() if key in known}
        if missing := sorted({"kafka", "redis"} - values.keys()):
            raise DeployError(f"{' and '.join(missing)} must be given")
        kinds: dict[str, tuple[type, ...]] = {"str": (str,), "int": (int,), "float": (int, float)}
        for key, value in values.items():
            empty = value == "" or (isinstance(value, int | float) and not 0 < value < 2**40)
            if type(value) not in kinds[known[key]] or empty:
                # An address may hold a password.
                got = "something else" if key in ADDRESSES else json.dumps(value, default=str)
                raise DeployError(f"{key} must be {_RULES[known[key]]}, got {got}")
        if any(mark in str(values["kafka"]) for mark in "@/"):  # errors name the brokers
            raise DeployError(
                "kafka must be host:port,host:port without a user or a password (kafka_user and "
                "kafka_password_file take them), got something else"
            )
        grace_s = values.get("grace_s", DEFAULT_GRACE_S)
        if isinstance(grace_s, int | float) and grace_s < LEAST_GRACE_S:
            raise DeployError(f"grace_s must be at least {LEAST_GRACE_S:g}, got {grace_s!r}")
        for key, words in _WORDS.items():
            if values.get(key, words[0]) not in words:
                raise DeployError(f"{key} must be {' or '.join(words)}, got {values[key]!r}")
        try:
            return cls(**values, limits=GatewaySettings.from_mapping(limits))  # type: ignore[arg-type]  # every type was checked
        except CollectorError as error:
            raise DeployError(str(error)) from None
