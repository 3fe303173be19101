"""The drill of one-time tokens: see drills.py."""

from __future__ import annotations

import hashlib
import random
import secrets
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path

from harness import labels, survey_text

PATIENCE_S = 150.0
LEAST_DEVICES, MOST_DEVICES = 30, 2_000
LEAST_KILLS = 5


def asked(start: str, period: str) -> str:
    """Return the text of the drills' survey."""
    return survey_text(
        "drill",
        labels(["good", "fair", "poor"]),
        epsilon=1.0,
        attribute="health",
        cohort=10,
        devices=1000,
        start=start,
        period=period,
        rounds=400,
        lateness="2s",
        skew="2s",
    )


def check(holds: object, what: str) -> None:
    """Raise SystemExit unless it holds."""
    if not holds:
        raise SystemExit(f"does not hold: {what}")


def reached(port: int) -> bool:
    """Return whether somebody listens."""
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1.0):
        return True
    return False


def tally(folder: Path) -> tuple[int, int]:
    """Return how many reports the node has counted, and how many it has dropped as copies."""
    store = folder / "data" / "store.sqlite"
    with closing(sqlite3.connect(store)) as counts:
        accepted, duplicate = counts.execute("SELECT sum(accepted), sum(duplicate) FROM tally").fetchone()
    return accepted or 0, duplicate or 0


def tokens(folder: Path) -> list[str]:  # noqa: PLR0915 - a drill is told in one piece
    """Kill issuer and node with -9 while devices fetch tokens and send; each report counts once.

    Devices come one after the other, at least LEAST_DEVICES, until both have been killed LEAST_KILLS times.
    """
    from redis_harness import free_port  # noqa: PLC0415

    from hubbub import Survey  # noqa: PLC0415
    from hubbub.survey import Attribute  # noqa: PLC0415
    from hubbub_client import Agent, Limits, Policy, TokenIssuer, Tokens, TransportError  # noqa: PLC0415

    hubbub = [sys.executable, "-m", "hubbub_deploy.cli"]
    devices, dice = 0, random.Random(14)  # noqa: S311 - the times of kills
    words = [f"device-{number}-{secrets.token_hex(8)}" for number in range(MOST_DEVICES)]
    (folder / "credentials").write_text(
        "\n".join(hashlib.sha256(word.encode()).hexdigest() for word in words)
    )
    key = subprocess.run(
        [*hubbub, "issuer", "keygen", str(folder / "issuer.pem")], capture_output=True, text=True, check=True
    )
    public = key.stdout.split()[-1]
    start = datetime.fromtimestamp(time.time() - 60, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    (folder / "survey.toml").write_text(asked(start, "3h"))
    survey = Survey.load(folder / "survey.toml")
    ports = {"issuer": free_port(), "node": free_port()}
    files = {name: str(folder / name) for name in ("issuer.pem", "credentials", "grants.sqlite")}
    issuing = ["issuer", "serve", files["issuer.pem"], "--credentials", files["credentials"]]
    counting = ["node", str(folder / "survey.toml"), "--data", str(folder / "data")]
    commands = {
        "issuer": [*hubbub, *issuing, "--data", files["grants.sqlite"], "--quantity", "2"],
        "node": [*hubbub, *counting, "--issuer", f"tokens.example={public}"],
    }
    running: dict[str, subprocess.Popen[bytes]] = {}
    ending, kills = threading.Event(), dict.fromkeys(commands, 0)

    def begin(name: str) -> None:
        with (folder / f"{name}.log").open("ab") as log:
            running[name] = subprocess.Popen(
                [*commands[name], "--port", str(ports[name])], stdout=log, stderr=log
            )

    def killing() -> None:
        """Kill one that serves, again and again: within three seconds after it can be reached."""
        while not ending.wait(dice.uniform(0.5, 3.0)):
            name = dice.choice(["issuer", "node"])
            if not reached(ports[name]):
                continue
            running[name].kill()
            running[name].wait()
            kills[name] += 1
            begin(name)

    for name in commands:
        begin(name)
    killer = threading.Thread(target=killing)
    killer.start()
    lost, told = [0, 0], dict[str, int]()
    policy, limits = Policy(require_opt_in="no"), Limits(gap_s=0.0, base_s=0.05, cap_s=0.3)
    try:
        for number, word in enumerate(words):
            if number >= LEAST_DEVICES and min(kills.values()) >= LEAST_KILLS:
                break
            devices = number + 1
            issuer = TokenIssuer(
                f"http://127.0.0.1:{ports['issuer']}", "tokens.example", public, word, quantity=2
            )
            deadline = time.monotonic() + PATIENCE_S
            while time.monotonic() < deadline:
                wallet = Tokens(folder / f"{number}.tokens", issuer)
                with Agent(
                    folder / f"{number}.db",
                    f"http://127.0.0.1:{ports['node']}",
                    budget=900.0,
                    policy=policy,
                    limits=limits,
                    tokens=wallet,
                ) as agent:
                    agent.register(Attribute.labels("health", ["good", "fair", "poor"], kind="evolving"))
                    agent.set("health", "fair")
                    agent.enrol(survey)
                    agent.answer()
                    try:
                        agent.fetch_tokens()
                    except TransportError:
                        lost[0] += 1
                    done = agent.upload()
                    lost[1] += done.failure == "unreachable"
                    for outcome in done.settled.values():
                        told[outcome] = told.get(outcome, 0) + 1
                    if done.settled:
                        break
                time.sleep(0.2)
    finally:
        ending.set()
        killer.join()
    deadline = time.monotonic() + PATIENCE_S
    while tally(folder)[0] < devices and time.monotonic() < deadline:  # the last node counts what is left
        time.sleep(0.1)
    running["node"].terminate()
    running["node"].wait()
    running["issuer"].kill()
    running["issuer"].wait()
    with closing(sqlite3.connect(folder / "data" / "log.sqlite")) as log:
        records = log.execute("SELECT count(*) FROM record").fetchone()[0]
    with closing(sqlite3.connect(folder / "grants.sqlite")) as grants:
        granted = grants.execute("SELECT count(*) FROM issued WHERE period >= 0").fetchone()[0]
    accepted, duplicate = tally(folder)
    check(min(kills.values()) >= LEAST_KILLS, f"both are killed {LEAST_KILLS} times, got {kills}")
    check(told == {"accepted": devices}, f"every device hears accepted once, got {told}")
    check(accepted == devices, f"{devices} reports count, got {accepted}")
    check(granted == devices, f"{devices} grants, got {granted}")
    return [
        f"{devices} devices, one report each; killed with -9: the issuer {kills['issuer']} times, the node",
        f"{kills['node']} times. {lost[0]} requests for tokens and {lost[1]} uploads met nobody and were",
        f"made again as they were. Counted: {accepted} accepted, {duplicate} duplicates dropped;",
        f"{records} records, {granted} grants, one a device: no token counted twice, none lost.",
    ]
