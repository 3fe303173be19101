#!/usr/bin/env python3
"""A real Kafka on this machine without Docker: one node or three, KRaft, from Maven's jars and Java 17.

    python3 deploy/kafka/broker.py --data /var/tmp/hubbub-kafka            one node on port 9092
    python3 deploy/kafka/broker.py --data /var/tmp/three --nodes 3         ports 9092, 9093, 9094

It prints `ready: <bootstrap servers>` once every node answers, and runs until SIGINT or SIGTERM. The folder
keeps everything: the same command continues where it stopped, on the same ports. The jars are copied once,
into `$XDG_CACHE_HOME/hubbub/`. For trying out and for tests: no passwords, and 127.0.0.1 only.
HUBBUB_TEST_KAFKA_VERSION names another version of Kafka than that of pom.xml.
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import ctypes
import os
import secrets
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import uuid
import zlib
from pathlib import Path

HERE = Path(__file__).resolve().parent
START_S = 120.0  # two JVMs on a busy core take ten
STOP_S = 15.0
# Small on purpose: a laptop runs three of them. Records lie in the page cache, not in the heap.
JAVA_OPTIONS = ("-Xms128m", "-Xmx512m", "-XX:+UseSerialGC")


class Failed(Exception):  # noqa: N818 - it says what happened
    """The message that the operator should read, printed as one line."""


def main() -> int:
    """Run the command and return the exit code."""
    parser = argparse.ArgumentParser(description="A local Kafka for trying out and for tests.")
    parser.add_argument("--data", type=Path, required=True, help="folder of its files; made if absent")
    parser.add_argument("--nodes", type=int, choices=(1, 3), default=1)
    parser.add_argument("--port", type=int, default=9092, help="of the first node; 0 for any free ones")
    options = parser.parse_args()
    try:
        return run(options.data.resolve(), options.nodes, options.port)
    except (Failed, OSError) as error:
        print(f"broker.py: {error}", file=sys.stderr)
        return 1


def run(data: Path, nodes: int, port: int) -> int:
    """Start every node, say when they are ready, and stop them when asked to."""
    for name in ("java", "mvn"):
        if shutil.which(name) is None:
            raise Failed(f"{name} must be installed (Java 17 or newer, Maven 3)")
    classpath = f"{jars()}/*"
    folders = [data / f"node-{number}" for number in range(1, nodes + 1)]
    ports = configure(data, folders, port)
    stopped: list[int] = []
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, _: stopped.append(number))
    running: list[subprocess.Popen[bytes]] = []
    try:
        for folder in folders:
            running.append(start(classpath, folder, (data / "cluster").read_text()))
        deadline = time.monotonic() + START_S
        while not stopped and not all(answers(number) for number in ports):
            if time.monotonic() > deadline or any(node.poll() is not None for node in running):
                raise Failed(f"Kafka did not start; {data}/node-*/log.txt say why")
            time.sleep(0.1)
        if not stopped:
            print("ready: " + ",".join(f"127.0.0.1:{number}" for number in ports), flush=True)
        while not stopped and any(node.poll() is None for node in running):
            time.sleep(0.2)
    finally:
        stop(running)
    return 0 if stopped else 1


def start(classpath: str, folder: Path, cluster: str) -> subprocess.Popen[bytes]:
    """Return one node's process; its storage is formatted first if it is new, its id left in `pid`."""
    properties, log = str(folder / "server.properties"), folder / "log.txt"
    if not (folder / "data" / "meta.properties").exists():
        storage = ("format", "-t", cluster, "-c", properties)
        if java(classpath, "kafka.tools.StorageTool", *storage, log=log).wait():
            raise Failed(f"the storage could not be formatted; {log} says why")
    node = java(classpath, "kafka.Kafka", properties, log=log)
    (folder / "pid").write_text(str(node.pid))
    return node


def stop(running: list[subprocess.Popen[bytes]]) -> None:
    """Ask all nodes to stop, and end those that do not."""
    for node in running:
        node.terminate()
    for node in running:
        try:
            node.wait(STOP_S)
        except subprocess.TimeoutExpired:
            node.kill()
            node.wait()


def jars() -> Path:
    """Return the folder of jars for this pom.xml; Maven is asked once."""
    pom, version = HERE / "pom.xml", os.environ.get("HUBBUB_TEST_KAFKA_VERSION", "")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "hubbub"
    folder = cache / f"kafka-{zlib.crc32(pom.read_bytes() + version.encode()):08x}"
    if not folder.is_dir():
        cache.mkdir(parents=True, exist_ok=True)
        print("broker.py: asking Maven for Kafka's jars (once)", file=sys.stderr)
        with tempfile.TemporaryDirectory(dir=cache) as fresh:
            command = ["mvn", "-q", "-B", "-f", str(pom), "dependency:copy-dependencies"]
            command += [f"-DoutputDirectory={fresh}/jars", "-DincludeScope=runtime"]
            command += [f"-Dkafka.version={version}"] if version else []
            if subprocess.run(command, stdout=sys.stderr, check=False).returncode:  # noqa: S603 - our own words
                raise Failed("Maven could not fetch the jars; the lines above say why")
            try:
                Path(fresh, "jars").rename(folder)
            except OSError:
                if not folder.is_dir():  # another process may have been quicker
                    raise
    return folder


def configure(data: Path, folders: list[Path], port: int) -> list[int]:
    """Write the nodes' properties if they are not there yet, and return the ports that clients connect to."""
    written = [folder / "server.properties" for folder in folders]
    if any(path.exists() for path in written):
        if not all(path.exists() for path in written) or (data / f"node-{len(folders) + 1}").exists():
            raise Failed(f"{data} was made for another number of nodes")
        return [listener_of(path) for path in written]
    count = len(folders)
    ports = [port + number for number in range(count)] if port else free_ports(count)
    controllers = free_ports(count)
    voters = ",".join(f"{number}@127.0.0.1:{at}" for number, at in enumerate(controllers, start=1))
    for number, (path, at, controller) in enumerate(zip(written, ports, controllers, strict=True), start=1):
        path.parent.mkdir(parents=True, exist_ok=True)
        settings = {
            "process.roles": "broker,controller",
            "node.id": number,
            "controller.quorum.voters": voters,
            "controller.listener.names": "CONTROLLER",
            "listeners": f"PLAINTEXT://127.0.0.1:{at},CONTROLLER://127.0.0.1:{controller}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "log.dirs": path.parent / "data",
            # A topic is made with the settings that Hubbub needs, or not at all.
            "auto.create.topics.enable": "false",
            "unclean.leader.election.enable": "false",
            "default.replication.factor": count,
            "min.insync.replicas": min(count, 2),
            "offsets.topic.replication.factor": count,
            "offsets.topic.num.partitions": 4,
            "transaction.state.log.replication.factor": count,
            "transaction.state.log.min.isr": min(count, 2),
            "group.initial.rebalance.delay.ms": 0,
            # A killed worker of a test is missed after seconds.
            "group.min.session.timeout.ms": 1000,
            # A node that was killed may come back under its name once its session has ended.
            "broker.session.timeout.ms": 3000,
            "broker.heartbeat.interval.ms": 500,
            "num.network.threads": 2,
            "num.io.threads": 4,
        }
        path.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    # A cluster's name is 16 bytes in URL-safe base64 without padding; a first "-" would read as an option.
    name = "-"
    while name.startswith("-"):
        name = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
    (data / "cluster").write_text(name)
    return ports


def listener_of(path: Path) -> int:
    """Return the client port in a node's properties."""
    for line in path.read_text().splitlines():
        if line.startswith("listeners=PLAINTEXT://"):
            return int(line.split(",")[0].rsplit(":", 1)[1])
    raise Failed(f"{path} must have a PLAINTEXT listener")


def free_ports(count: int) -> list[int]:
    """Return ports that nobody listens on now, below those that outgoing connections take.

    A node that starts again needs its port back: one of theirs may be somebody's connection by then.
    """
    with contextlib.ExitStack() as held:
        found: list[int] = []
        while len(found) < count:
            probe = held.enter_context(socket.socket())
            port = 20_000 + secrets.randbelow(12_000)
            with contextlib.suppress(OSError):
                probe.bind(("127.0.0.1", port))
                found.append(port)
        return found


def java(classpath: str, program: str, *arguments: str, log: Path) -> subprocess.Popen[bytes]:
    """Return a JVM that ends with this process, whatever ends it (on Linux)."""
    command = ["java", *JAVA_OPTIONS, "-cp", classpath, program, *arguments]
    with log.open("ab") as output:
        return subprocess.Popen(  # noqa: S603 - our own words
            command,
            stdout=output,
            stderr=output,
            start_new_session=True,
            preexec_fn=_end_with_parent,  # noqa: PLW1509 - this program has one thread
        )


def _end_with_parent() -> None:
    if sys.platform == "linux":
        pr_set_pdeathsig = 1
        ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)


def answers(port: int) -> bool:
    """Return whether a broker answers the first question of every client: which versions it speaks."""
    question = struct.pack(">hhih", 18, 0, 1, -1)  # ApiVersions, version 0, correlation 1, no client id
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1) as connection:
            connection.sendall(struct.pack(">i", len(question)) + question)
            return len(connection.recv(8)) == 8
    except OSError:
        return False


if __name__ == "__main__":
    sys.exit(main())
