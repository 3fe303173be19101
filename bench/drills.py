"""Drills of a cluster with real brokers, Redis and processes: what docs/drills.md tells to do, watched.

    python bench/drills.py                         all of them, as Markdown
    python bench/drills.py restore tokens          some

restore: Redis and archive from a backup. seal-key, list-key: a key is changed. full-disk: a dashboard has no
room. lost-broker: one of three, then two. tokens: issuer and node are killed again and again, and each
report with a token counts once. A drill that does not come out as the page says ends it with 1.
"""

from __future__ import annotations

import argparse
import resource
import secrets
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import urllib3
from token_drill import asked, check, tokens

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests" / "harness"))
PATIENCE_S = 150.0
HUBBUB = [sys.executable, "-m", "hubbub_deploy.cli"]


class Cluster:
    """A broker or three, a Redis, and the processes of one cluster, each in its folder."""

    def __init__(self, folder: Path, *, nodes: int = 1, round_s: int = 12, **settings: str) -> None:
        from kafka_harness import Broker  # noqa: PLC0415
        from redis_harness import RedisServer  # noqa: PLC0415

        from hubbub import Survey  # noqa: PLC0415

        self.folder, self.running = folder, dict[str, subprocess.Popen[str]]()
        for name in ("kafka", "redis"):
            (folder / name).mkdir()
        self.broker = Broker(folder / "kafka", nodes)
        self.broker.start()
        self.redis = RedisServer(folder / "redis", "--maxmemory-policy", "noeviction")
        self.redis.start()
        self.settings = {"kafka": self.broker.bootstrap, "redis": self.redis.url, "topic": "drill"} | settings
        start = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        (folder / "survey.toml").write_text(asked(start, f"{round_s}s"))
        self.survey = Survey.load(folder / "survey.toml")
        copies = ["--replication", "3"] if nodes == 3 else []
        self.command("topic", self.file(), "--partitions", "2", *copies)

    def file(self, **more: str) -> str:
        """Write the settings; return their file."""
        path = self.folder / "cluster.toml"
        lines = [f"{key} = '{value}'" for key, value in (self.settings | more).items()]
        path.write_text("\n".join([*lines, "grace_s = 10", "session_s = 2", ""]))
        return str(path)

    def command(self, *words: str) -> str:
        """Run a command that ends by itself; return what it printed."""
        done = subprocess.run(
            [sys.executable, "-m", "hubbub_deploy.cli", *words], capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise SystemExit(f"{' '.join(words)}: {done.stderr[-2000:]}")
        return done.stdout.strip()

    def start(self, name: str, *words: str) -> str:
        """Start a process; return its address once it says it."""
        command = [sys.executable, "-m", "hubbub_deploy.cli", *words]
        with (self.folder / f"{name}.log").open("a") as log:
            process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
        self.running[name] = process
        assert process.stdout is not None
        for line in process.stdout:
            if ": http://" in line:
                return line.split(": ", 1)[1].split()[0]
        raise SystemExit(f"{name} ended: {self.said(name)}")

    def all(self, *collector: str) -> None:
        """Start collector, aggregator and dashboard."""
        self.collector = self.start(
            "collector", "collector", self.file(), *self.asked(), "--port", "0", *collector
        )
        self.counters()

    def asked(self) -> list[str]:
        """Return the survey files."""
        return [str(self.folder / "survey.toml")]

    def counters(self) -> None:
        """Start aggregator and dashboard."""
        self.start("aggregator", "aggregator", self.file(), "--port", "0")
        self.page = self.start("dashboard", "dashboard", self.file(), "--data", str(self.data), "--port", "0")

    @property
    def data(self) -> Path:
        """The folder of the archive."""
        return self.folder / "archive"

    def end(self, *names: str, hard: bool = False) -> None:
        """End processes, or all; with -9 if `hard`."""
        for name in names or list(self.running):
            process = self.running.pop(name)
            process.kill() if hard else process.terminate()
            process.wait()
            assert process.stdout is not None
            process.stdout.close()

    def said(self, name: str) -> str:
        """Return the last line that a process logged."""
        lines = (self.folder / f"{name}.log").read_text().strip().splitlines()
        return lines[-1] if lines else ""

    def send(self, n: int) -> tuple[int, list[str]]:
        """Send reports of the round that is open; return status and outcomes."""
        from hubbub.wire.report import Report, decode_response, encode_report, encode_upload  # noqa: PLC0415

        number = self.survey.round_at(time.time())
        reports = [Report(self.survey.digest, number or 0, secrets.token_bytes(16), i % 3) for i in range(n)]
        body = encode_upload(list(map(encode_report, reports)))
        answer = urllib3.request(
            "POST", f"{self.collector}/v1/reports", body=body, retries=False, timeout=60.0
        )
        return answer.status, decode_response(answer.data) if answer.status == 200 else []

    def live(self) -> dict[str, Any]:
        """Return all that the page shows."""
        found: dict[str, Any] = urllib3.request("GET", f"{self.page}/api/live", timeout=30.0).json()
        return found

    def released(self) -> dict[int, int]:
        """Return the devices of each sealed round."""
        lines = [line for each in self.live()["surveys"] for line in each["rounds"] if line["sealed"]]
        return {line["round"]: line["devices"] for line in lines}

    def release(self, number: int) -> bytes:
        """Return a round's release as it is served."""
        url = f"{self.page}/api/surveys/{self.survey.digest.hex()}/rounds/{number}"
        return bytes(urllib3.request("GET", url, timeout=30.0).data)

    def until(self, what: str, true: Callable[[], object]) -> float:
        """Wait until something is so; return the seconds that it took."""
        began = time.monotonic()
        while not true():
            if time.monotonic() - began > PATIENCE_S:
                logs = "\n".join(
                    f"{path.stem}: {path.read_text()[-700:]}" for path in self.folder.glob("*.log")
                )
                raise SystemExit(f"did not come: {what}\n{logs}")
            time.sleep(0.3)
        return time.monotonic() - began

    def close(self) -> None:
        """End everything."""
        self.end(hard=True)
        self.redis.kill()
        self.broker.stop()


def restore(cluster: Cluster) -> list[str]:
    """Lose Redis and archive, and take both from a backup."""
    from redis import Redis  # noqa: PLC0415

    cluster.all()
    check(cluster.send(300)[0] == 200, "300 reports are taken")
    cluster.until("a release", lambda: 300 in cluster.released().values())
    first = next(number for number, n in cluster.released().items() if n == 300)
    before = cluster.release(first)
    with Redis.from_url(cluster.redis.url) as client:
        client.save()
    backup = cluster.folder / "backup"
    backup.mkdir()
    shutil.copy(cluster.folder / "redis" / "dump.rdb", backup)
    paths = [where / "archive.sqlite" for where in (cluster.data, backup)]
    with closing(sqlite3.connect(paths[0])) as now, closing(sqlite3.connect(paths[1])) as copy:
        now.backup(copy)
    check(cluster.send(200)[0] == 200, "200 reports after the backup are taken")
    cluster.until("500 counted", lambda: cluster.live()["accounting"]["accepted"] == 500)
    cluster.redis.kill()
    cluster.end("aggregator", "dashboard", hard=True)
    shutil.rmtree(cluster.data)
    (cluster.folder / "redis" / "dump.rdb").unlink()
    said = [
        "Lost: Redis and its dump, and the archive; 300 reports were released, 200 counted since the backup."
    ]
    shutil.copy(backup / "dump.rdb", cluster.folder / "redis")
    cluster.redis.start()
    process = subprocess.run(
        [*HUBBUB, "dashboard", cluster.file(), "--port", "0", "--data", str(cluster.folder / "nothing")],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )
    check(process.returncode == 1, "a dashboard without the archive refuses to start")
    refused = process.stderr.splitlines()[-1][:200]
    said.append(f"Redis back, a dashboard with an empty folder: ends with 1, `{refused}`")
    cluster.data.mkdir(mode=0o700)
    shutil.copy(backup / "archive.sqlite", cluster.data)
    cluster.counters()
    took = cluster.until("the second release", lambda: 200 in cluster.released().values())
    check(cluster.release(first) == before, "the first release has its bytes")
    check(cluster.live()["accounting"]["accepted"] == 500, "500 reports are counted once")
    said.append(
        f"Archive back, aggregator and dashboard started: 500 counted, both rounds released after {took:.0f}"
    )
    said.append("seconds, the first with the same bytes.")
    cluster.end("aggregator", "dashboard", hard=True)
    with Redis.from_url(cluster.redis.url) as client:
        client.flushall()
    cluster.counters()
    took = cluster.until("all counted anew", lambda: cluster.live()["accounting"]["accepted"] == 500)
    cluster.until("the releases", lambda: cluster.released().get(first) == 300)
    check(cluster.release(first) == before, "the first release has its bytes")
    return [
        *said,
        f"Redis empty instead of restored: all counted anew from the topic after {took:.0f} s, as before.",
    ]


def seal_key(cluster: Cluster) -> list[str]:
    """Change the sealer's key while the cluster runs."""
    old, new = (cluster.command("survey", "keygen", "--out", f"{cluster.folder}/{name}.pem") for name in "ab")
    cluster.settings |= {"seal_keys": old, "seal_key_file": f"{cluster.folder}/a.pem"}
    cluster.all()
    cluster.send(50)
    cluster.until("a release", lambda: 50 in cluster.released().values())
    cluster.settings |= {"seal_keys": f"{new}, {old}"}
    cluster.end("aggregator")
    cluster.start("aggregator", "aggregator", cluster.file(), "--port", "0")
    cluster.settings |= {"seal_key_file": f"{cluster.folder}/b.pem"}
    cluster.end("dashboard")
    words = ["dashboard", cluster.file(), "--data", str(cluster.data), "--port", "0"]
    cluster.page = cluster.start("dashboard", *words)
    cluster.send(60)
    cluster.until("a release by the new key", lambda: {50, 60} <= set(cluster.released().values()))
    check(cluster.live()["dead"] == 0, "no seal is a dead letter")
    replayed = cluster.command(
        "replay",
        f"kafka://{cluster.broker.bootstrap}/drill",
        "--settings",
        cluster.file(),
        "--archive",
        str(cluster.data),
    )
    check(replayed.count("the same bytes") >= 2, "both rounds replay with the same bytes")
    return [
        "A round sealed by the old key, one by the new: both released, no dead letter, and `hubbub replay`",
        "by both keys says *the same bytes*.",
    ]


def list_key(cluster: Cluster) -> list[str]:
    """Change the key that signs lists: devices pin both, then the new one."""
    folder = cluster.folder
    old, new = (
        cluster.command("survey", "keygen", "--out", f"{folder}/{name}.pem") for name in ("old", "new")
    )
    survey, out = str(folder / "survey.toml"), str(folder / "list.bin")
    cluster.command("survey", "sign", survey, "--key", f"{folder}/old.pem", "--out", out)
    cluster.collector = cluster.start(
        "collector", "collector", cluster.file(), survey, "--list", out, "--port", "0"
    )

    def device(name: str, *keys: str) -> str:
        words = ["agent", "answer", "--ledger", f"{folder}/{name}.db", "--collector", cluster.collector]
        words += ["--budget", "900", "--set", "health=good", "--join", "drill"]
        words += [word for key in keys for word in ("--survey-key", key)]
        done = subprocess.run(
            [sys.executable, "-m", "hubbub_deploy.cli", *words], capture_output=True, text=True, check=False
        )
        text = done.stderr if done.returncode else done.stdout
        return f"{done.returncode} {text.strip().splitlines()[-1][:160]}"

    said = [f"Signed by the old key, a device that pins it: `{device('one', old)}`"]
    check(said[-1].split("`")[1].startswith("0"), said[-1])
    cluster.command("survey", "sign", survey, "--key", f"{folder}/new.pem", "--former", old, "--out", out)
    refused = device("one", old)
    check(not refused.startswith("0"), "a device with the old key alone refuses the new list")
    both, alone = device("two", old, new), device("three", new)
    check(both.startswith("0") and alone.startswith("0"), f"{both}, {alone}")
    return [
        *said,
        f"Signed by the new one (`--former`), a device that pins the old one alone: `{refused}`;",
        f"one that pins both: `{both}`; the new one alone: `{alone}`.",
    ]


def full_disk(cluster: Cluster) -> list[str]:
    """Take the room of a release from a dashboard's disk, and give it back later."""
    cluster.all()
    cluster.send(40)
    pid = cluster.running["dashboard"].pid
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
    cluster.until("the page says it", lambda: cluster.live().get("stale") or cluster.live().get("unsealed"))
    live = cluster.live()
    ready = urllib3.request("GET", f"{cluster.page}/readyz", retries=False, timeout=30.0)
    status, outcomes = cluster.send(30)
    check((status, set(outcomes)) == (200, {"accepted"}), "uploads go on")
    check(not cluster.released(), "nothing is released")
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    took = cluster.until("the releases", lambda: {40, 30} <= set(cluster.released().values()))
    said = live.get("stale") or live.get("unsealed")
    return [
        f"No file of the dashboard may grow: the page says `{str(said)[:200]}`,",
        f"`/readyz` is {ready.status}, 30 more reports are accepted, nothing is released.",
        f"Room again: both rounds are released after {took:.0f} s; nobody started anything.",
    ]


def lost_broker(cluster: Cluster) -> list[str]:
    """Kill one of three brokers, then a second one, and start both again."""
    cluster.all()
    check(cluster.send(20)[0] == 200, "20 reports are taken")
    cluster.broker.kill_node(3)
    began = time.monotonic()
    cluster.until("an upload with one broker away", lambda: cluster.send(20)[0] == 200)
    one = time.monotonic() - began
    cluster.broker.kill_node(2)
    status, began = 200, time.monotonic()
    while status == 200 and time.monotonic() - began < PATIENCE_S:
        status = cluster.send(20)[0]
    check(status == 503, f"two of three away: 503, got {status}")
    cluster.broker.stop()
    cluster.broker.start()
    took = cluster.until("an upload again", lambda: cluster.send(20)[0] == 200)
    return [
        f"One of three killed: uploads are `accepted` {one:.1f} s later. A second one killed: 503, and",
        f"devices keep their reports. All started again: `accepted` {took:.0f} s later, same collector.",
    ]


DRILLS = {"restore": restore, "seal-key": seal_key, "list-key": list_key, "full-disk": full_disk}


def main() -> None:
    """Run the drills that are named, each on files of its own."""
    parser = argparse.ArgumentParser()
    names = [*DRILLS, "lost-broker", "tokens"]
    parser.add_argument("drill", nargs="*", choices=[*names, []])
    for name in parser.parse_args().drill or names:
        folder = Path(tempfile.mkdtemp(prefix=f"hubbub-{name}-"))
        began = time.monotonic()
        try:
            if name == "tokens":
                said = tokens(folder)
            else:
                cluster = Cluster(folder, nodes=3 if name == "lost-broker" else 1)
                try:
                    said = (lost_broker if name == "lost-broker" else DRILLS[name])(cluster)
                finally:
                    cluster.close()
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        print(f"**{name}** ({time.monotonic() - began:.0f} s). " + "\n".join(said) + "\n", flush=True)


if __name__ == "__main__":
    main()
