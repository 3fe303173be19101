"""The surroundings of a cluster of `chaos_world` for faults that kill nobody.

Cuts, slow and full disks, slots that move. A cut is made by a proxy between every part and the servers: while
a way is shut, its bytes wait, as they do where packets are lost and TCP sends them again; nothing but the
time tells of the cut. A slow disk of Redis is strace's: every fsync of the process is held up before it
begins. A full disk is a small file system of its own, mounted as root in a namespace of the bench.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib.util
import os
import signal
import subprocess
import threading
import time
from pathlib import Path
from typing import Any, Final

import redis
from chaos_world import Broker, RedisServer, World
from kafka_harness import SCRIPT
from proxy import Proxy
from redis_harness import running_cluster

from hubbub_aggregator.counting.counting import RoundKey
from hubbub_aggregator.stores.archive import SqliteArchive

CUT_S: Final = 15.0
"""Seconds of a cut, and of a broker that stands still: sessions are 2 s, others wait 10 s for answers."""
FSYNC_S: Final = 0.2
PUT_S: Final = 1.0


class ThroughProxies(World):
    """A cluster whose every part reaches broker and Redis through a proxy."""

    def start_servers(self) -> None:
        """Start both behind their proxies; the broker names its proxy as its address."""
        spec = importlib.util.spec_from_file_location("broker", SCRIPT)
        assert spec is not None and spec.loader is not None
        script = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(script)
        data = self.folder / "broker"
        (port,) = script.configure(data, [data / "node-1"], 0)
        self.broker_proxy = Proxy(port)
        with (data / "node-1" / "server.properties").open("a") as properties:
            properties.write(f"advertised.listeners=PLAINTEXT://127.0.0.1:{self.broker_proxy.port}\n")
        self.broker = Broker(data, 1)
        self.broker.start()
        self.kafka = f"127.0.0.1:{self.broker_proxy.port}"
        self.redis = RedisServer(self.folder / "redis", "--maxmemory-policy", "noeviction")
        self.redis.start()
        self.redis_proxy = Proxy(self.redis.port)
        self.redis_url = f"redis://127.0.0.1:{self.redis_proxy.port}/0"

    def stop_servers(self) -> None:
        """End them."""
        super().stop_servers()
        self.broker_proxy.close()
        self.redis_proxy.close()


def _shut(world: World, what: str, *ways: threading.Event) -> None:
    for way in ways:
        way.clear()
    time.sleep(CUT_S)
    for way in ways:
        way.set()
    world.happened[what] += 1


def cut_log(world: World) -> None:
    """Let nothing come to the broker or from it."""
    assert isinstance(world, ThroughProxies)
    _shut(world, "broker cut off", world.broker_proxy.to_server, world.broker_proxy.to_client)


def half_cut_log(world: World) -> None:
    """Let the broker hear everything, and nobody hear it."""
    assert isinstance(world, ThroughProxies)
    _shut(world, "broker's answers cut off", world.broker_proxy.to_client)


def cut_both(world: World) -> None:
    """Let nothing come to broker or Redis or from them."""
    assert isinstance(world, ThroughProxies)
    proxies = (world.broker_proxy, world.redis_proxy)
    ways = [way for proxy in proxies for way in (proxy.to_server, proxy.to_client)]
    _shut(world, "broker and Redis cut off", *ways)


def half_cut_redis(world: World) -> None:
    """Let Redis do what it is asked, and nobody hear of it."""
    assert isinstance(world, ThroughProxies)
    _shut(world, "Redis' answers cut off", world.redis_proxy.to_client)


def pause_broker(world: World) -> None:
    """Stop the broker's process for longer than every session, and let it go on."""
    broker = int((world.folder / "broker" / "node-1" / "pid").read_text())
    os.kill(broker, signal.SIGSTOP)
    time.sleep(CUT_S)
    os.kill(broker, signal.SIGCONT)
    world.happened["broker stopped and continued"] += 1


def pause_worker(world: World) -> None:
    """Stop a worker until the group has given its partitions away, and let it go on."""
    world.wait_counting()
    with world._lock:
        worker = world._workers[0]
    worker.send_signal(signal.SIGSTOP)
    time.sleep(CUT_S)
    worker.send_signal(signal.SIGCONT)
    world.happened["worker stopped and continued"] += 1


class SlowRedis(World):
    """A cluster whose Redis syncs every save, on a disk that takes FSYNC_S longer for it."""

    def start_servers(self) -> None:
        """Start both, and have strace hold up each fsync of Redis."""
        super().start_servers()
        with redis.Redis.from_url(self.redis_url) as client:
            client.config_set("appendonly", "yes")
            client.config_set("appendfsync", "always")
        assert self.redis._process is not None
        self._said = self.folder / "strace.txt"
        hold_up = f"inject=fsync,fdatasync:delay_enter={int(FSYNC_S * 1e6)}"
        words = ["strace", "-f", "-p", str(self.redis._process.pid), "-o", str(self._said)]
        self._strace = subprocess.Popen(
            [*words, "-e", "trace=fsync,fdatasync", "-e", hold_up], stderr=subprocess.DEVNULL
        )
        self.wait_for(self._said.exists, "strace")

    def stop_servers(self) -> None:
        """End them; a run in which nothing was held up shows nothing."""
        held_up = self._said.read_text().count("DELAYED")
        self.happened["fsyncs of Redis held up"] = held_up
        self._strace.terminate()
        self._strace.wait()
        super().stop_servers()
        if not held_up:
            raise AssertionError("no fsync of Redis was held up")


class _SlowArchive(SqliteArchive):
    def put(self, key: RoundKey, data: bytes) -> None:
        time.sleep(PUT_S)
        super().put(key, data)


class SlowArchiveWorld(World):
    """A cluster whose dashboard writes each release PUT_S late."""

    def open_archive(self) -> SqliteArchive:
        """Return the dashboard's archive."""
        self.happened["seconds that a release waits"] = int(PUT_S)
        return _SlowArchive(self.archive_path)


class SmallDisk(World):
    """A cluster whose releases lie on a file system of 2 MiB; needs root."""

    @property
    def archive_path(self) -> Path:
        """The file of the releases."""
        return self.folder / "small" / "archive.sqlite"

    def open_archive(self) -> SqliteArchive:
        """Return the dashboard's archive, on a disk that nobody else sees."""
        disk = self.folder / "small"
        disk.mkdir()
        libc = ctypes.CDLL(None, use_errno=True)
        # Only this thread's mounts: the threads that write are made by it.
        if libc.unshare(0x00020000) or libc.mount(b"none", b"/", None, 0x44000, None):
            raise PermissionError(ctypes.get_errno(), "a small disk must be mounted by root")
        if libc.mount(b"none", os.fsencode(disk), b"tmpfs", 0, b"size=2m"):
            raise PermissionError(ctypes.get_errno(), "a small disk must be mounted by root")
        return SqliteArchive(self.archive_path)

    def __exit__(self, *rest: object) -> None:
        super().__exit__(*rest)
        ctypes.CDLL(None).umount2(os.fsencode(self.folder / "small"), 2)


def fill_archive(world: World) -> None:
    """Fill the disk of the archive until a release has waited for room."""
    ballast = world.archive_path.with_name("ballast")
    with ballast.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(bytes(4096))
    released = world.look()
    world.happened["archive's disk full"] += 1
    # The round before this one was released, this one is due when its time is over: all of it waits.
    threading.Timer(40.0, ballast.unlink).start()
    world.happened["releases when it became full"] = released


class OnCluster(World):
    """A cluster whose store is a Redis Cluster of three servers."""

    def start_servers(self) -> None:
        """Start a broker and three Redis servers."""
        self.broker = Broker(self.folder / "broker", self.nodes)
        self.broker.start()
        self.kafka = self.broker.bootstrap
        self._stack = contextlib.ExitStack()
        self.servers = self._stack.enter_context(running_cluster(self.folder / "redis"))
        for server in self.servers:
            with redis.Redis.from_url(server.url) as client:
                client.config_set("maxmemory-policy", "noeviction")
        self.redis_url = f"redis+cluster://127.0.0.1:{self.servers[0].port}"

    def stop_servers(self) -> None:
        """End them."""
        self._stack.close()
        self.broker.stop()


def reshard(world: World) -> None:
    """Move every slot that holds a key to the next server, key by key, while all goes on."""
    assert isinstance(world, OnCluster)
    clients = [redis.Redis.from_url(server.url) for server in world.servers]
    names = [client.execute_command("CLUSTER", "MYID") for client in clients]
    mine = {place: _slots_with_keys(client) for place, client in enumerate(clients)}
    for place, slots in mine.items():
        target = (place + 1) % len(clients)
        for slot in slots:
            clients[target].execute_command("CLUSTER", "SETSLOT", slot, "IMPORTING", names[place])
            clients[place].execute_command("CLUSTER", "SETSLOT", slot, "MIGRATING", names[target])
            while keys := clients[place].execute_command("CLUSTER", "GETKEYSINSLOT", slot, 10):
                address = ("127.0.0.1", world.servers[target].port)
                clients[place].execute_command("MIGRATE", *address, "", 0, 5000, "KEYS", *keys)
            for client in (clients[target], clients[place], *clients):
                client.execute_command("CLUSTER", "SETSLOT", slot, "NODE", names[target])
            world.happened["slots moved"] += 1
    for client in clients:
        client.close()


def _slots_with_keys(client: Any) -> list[int]:
    keys = list(client.scan_iter(count=1000))
    return sorted({client.execute_command("CLUSTER", "KEYSLOT", key) for key in keys})
