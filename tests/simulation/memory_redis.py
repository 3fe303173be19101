"""A Redis in memory: the commands that the product's scripts and stores use, each one step.

It is held equal to a real server by the store's contract tests, key by key. Its dump is a copy; it may come
back with an older one, with nothing, or without a key; an answer may be lost after the work was done.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from fnmatch import fnmatchcase
from typing import Any

import lua
import redis

Value = bytes | list[bytes] | dict[bytes, bytes]
Dump = tuple[dict[bytes, Value], dict[bytes, float]]


def _bytes(value: Any) -> bytes:
    return value.encode() if isinstance(value, str) else lua.text(value)


class MemoryRedis:
    """One server, and its only client.

    Args:
        clock: Seconds since 1970.
        trouble: Called before and after each command or script that a client sends; what it raises is what
            the client sees.
    """

    def __init__(self, clock: Callable[[], float], trouble: Callable[[str], None] = lambda _: None) -> None:
        self.clock, self.trouble = clock, trouble
        self.data: dict[bytes, Value] = {}
        self._until: dict[bytes, float] = {}
        self.policy = "noeviction"

    def dump(self) -> Dump:
        """Return a copy of everything."""
        return copy.deepcopy((self.data, self._until))

    def restart(self, dump: Dump = ({}, {})) -> None:
        """Begin again from a dump, or with nothing."""
        self.data, self._until = copy.deepcopy(dump)

    # What a client asks for.

    def _sent(self, name: str, *given: Any) -> Any:
        self.trouble("before")
        found = self._do(name, *given)
        self.trouble("after")
        return found

    def hget(self, key: Any, field: Any) -> bytes | None:
        found: bytes | None = self._sent("HGET", key, field)
        return found

    def hkeys(self, key: Any) -> list[bytes]:
        self.trouble("before")
        return list(self._hash(_bytes(key)))

    def lrange(self, key: Any, first: int, last: int) -> list[bytes]:
        found: list[bytes] = self._sent("LRANGE", key, first, last)
        return found

    def unlink(self, key: Any) -> int:
        found: int = self._sent("UNLINK", key)
        return found

    def scan_iter(self, match: str, count: int = 0) -> Iterator[bytes]:
        del count
        return iter([key for key in self.data if fnmatchcase(key.decode(), match.replace("[", "[[]"))])

    def info(self, section: str) -> dict[str, Any]:
        del section
        self.trouble("before")
        return {"used_memory": 0, "maxmemory_policy": self.policy}

    def time(self) -> tuple[int, int]:
        now_s = self.clock()
        return int(now_s), int(now_s % 1.0 * 1e6)

    def close(self) -> None:
        """Nothing is open."""

    def pipeline(self) -> _Together:
        return _Together(self)

    def register_script(self, script: str) -> Callable[..., Any]:
        run = lua.compiled(script)

        def call(keys: Sequence[Any], args: Sequence[Any] = ()) -> Any:
            self.trouble("before")
            found = _answer(run(self, [_bytes(key) for key in keys], [_bytes(word) for word in args]))
            self.trouble("after")
            return found

        return call

    # What a script asks for.

    def call(self, name: bytes, *given: Any) -> Any:
        """Do what `redis.call` does."""
        found = self._do(name.decode(), *given)
        if isinstance(found, list):
            return lua.Table(False if each is None else each for each in found)
        return False if found is None else found

    def pcall(self, name: bytes, *given: Any) -> Any:
        """Do what `redis.pcall` does."""
        try:
            return self.call(name, *given)
        except redis.ResponseError as error:
            return lua.Table(err=str(error).encode())

    def _do(self, name: str, key: Any, *given: Any) -> Any:
        key = _bytes(key)
        if key in self._until and self.clock() >= self._until[key]:
            self._gone(key)
        return getattr(self, f"_{name.lower()}")(key, *map(_bytes, given))

    def _of(self, key: bytes, kind: type[Any]) -> Any:
        found = self.data.get(key)
        if found is not None and not isinstance(found, kind):
            raise redis.ResponseError("WRONGTYPE Operation against a key holding the wrong kind of value")
        return found

    def _hash(self, key: bytes) -> dict[bytes, bytes]:
        found: dict[bytes, bytes] = self._of(key, dict) or {}
        return found

    def _gone(self, key: bytes) -> int:
        self._until.pop(key, None)
        return int(self.data.pop(key, None) is not None)

    _del = _unlink = _gone

    def _exists(self, key: bytes) -> int:
        return int(key in self.data)

    def _get(self, key: bytes) -> bytes | None:
        found: bytes | None = self._of(key, bytes)
        return found

    def _mget(self, *keys: bytes) -> list[bytes | None]:
        return [self._get(key) for key in keys]

    def _set(self, key: bytes, value: bytes, *rest: bytes) -> bytes:
        self._gone(key)
        self.data[key] = value
        if rest:
            assert rest[0] == b"PX"
            self._until[key] = self.clock() + int(rest[1]) / 1000.0
        return b"OK"

    def _hget(self, key: bytes, field: bytes) -> bytes | None:
        return self._hash(key).get(field)

    def _hmget(self, key: bytes, *fields: bytes) -> list[bytes | None]:
        return [self._hget(key, field) for field in fields]

    def _hlen(self, key: bytes) -> int:
        return len(self._hash(key))

    def _hexists(self, key: bytes, field: bytes) -> int:
        return int(field in self._hash(key))

    def _hgetall(self, key: bytes) -> list[bytes]:
        return [each for pair in self._hash(key).items() for each in pair]

    def _hset(self, key: bytes, *pairs: bytes) -> int:
        known = self._hash(key)
        new = dict(zip(pairs[::2], pairs[1::2], strict=True))
        added = len(new.keys() - known.keys())
        self.data[key] = known | new
        return added

    def _hsetnx(self, key: bytes, field: bytes, value: bytes) -> int:
        return 0 if field in self._hash(key) else self._hset(key, field, value)

    def _hincrby(self, key: bytes, field: bytes, by: bytes) -> int:
        now = int(self._hash(key).get(field, b"0")) + int(by)
        self._hset(key, field, b"%d" % now)
        return now

    def _hdel(self, key: bytes, field: bytes) -> int:
        known = self._hash(key)
        gone = int(known.pop(field, None) is not None)
        if not known:
            self._gone(key)
        return gone

    def _llen(self, key: bytes) -> int:
        return len(self._of(key, list) or ())

    def _lrange(self, key: bytes, first: bytes, last: bytes) -> list[bytes]:
        end = int(last)
        return list((self._of(key, list) or [])[int(first) : end + 1 if end >= 0 else None])

    def _rpush(self, key: bytes, *values: bytes) -> int:
        known = self.data.setdefault(key, [])
        self._of(key, list).extend(values)
        return len(known)

    def _bitfield(self, key: bytes, *words: bytes) -> list[int]:
        data, found, at = bytearray(self._of(key, bytes) or b""), [], 0
        while at < len(words):
            verb, kind, place = words[at], words[at + 1], words[at + 2]
            assert kind == b"i64"
            begin = 8 * int(place.removeprefix(b"#"))
            number = int.from_bytes(data[begin : begin + 8].ljust(8, b"\0"), "big", signed=True)
            if verb == b"INCRBY":
                number += int(words[at + 3])
                data.extend(bytes(max(0, begin + 8 - len(data))))
                data[begin : begin + 8] = number.to_bytes(8, "big", signed=True)
                self.data[key] = bytes(data)
            found.append(number)
            at += 3 if verb == b"GET" else 4
        return found


class _Together:
    """Commands that are sent together."""

    def __init__(self, server: MemoryRedis) -> None:
        self._server, self._asked = server, list[Callable[[], Any]]()

    def __enter__(self) -> _Together:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing is open."""

    def hgetall(self, key: Any) -> _Together:
        self._asked.append(lambda: dict(self._server._hash(_bytes(key))))
        return self

    def get(self, key: Any) -> _Together:
        self._asked.append(lambda: self._server._do("GET", key))
        return self

    def execute(self) -> list[Any]:
        self._server.trouble("before")
        return [each() for each in self._asked]


def _answer(value: Any) -> Any:
    """Return what a client gets of what a script returned."""
    if isinstance(value, lua.Table):
        return [_answer(each) for each in value.places]
    if value is True:
        return 1
    return None if value is False else value
