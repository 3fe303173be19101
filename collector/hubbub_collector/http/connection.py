"""One HTTP connection of a server, within bounds that no sender gets around: bytes, queued requests, time.

uvicorn's protocol parses, runs the application and writes its answers. What is added here says how much one
connection may hold, and for how long; docs/bounds.md has the bounds in one table.
"""

from __future__ import annotations

import asyncio
import math
from typing import Any, Final, cast

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from hubbub_collector.http.connections import Connections
from hubbub_collector.http.exchange import SENDER, Sender
from hubbub_collector.http.flow import BoundedFlow, LingeringTransport
from hubbub_collector.settings import GatewaySettings

# Of a request everything but its body: line, headers, sizes of chunks, trailers. As much as an upload may
# be, and several times what any client sends.
MAX_OVERHEAD_BYTES: Final = 64 * 2**10
# A header of one byte takes some 150 in memory, and a trailer as much time to pass over, so both are counted,
# too. Clients send ten, browsers twenty.
MAX_HEADERS: Final = 128
_HEADER_BYTES: Final = 150
# Bytes for the parser at once: the events of so few are bounded before they are looked at.
_SLICE_BYTES: Final = 16 * 2**10
# Requests that wait behind one that is being answered. Browsers and devices send one at a time.
MAX_QUEUED: Final = 4
# After a refusal so many times the largest upload is received and dropped: its sender shall read the answer.
_LINGER_UPLOADS: Final = 16
KEEP_ALIVE_S: Final = 5.0
"""Seconds that a connection stays open after an answer: what uvicorn and most servers give."""


class Connection(HttpToolsProtocol):
    """The protocol of uvicorn within bounds.

    It has one timer. A complete request stops it, a complete answer starts it anew, and nothing else does: a
    byte now and then gains no time. A request's head must be there `body_timeout_s` after its beginning, its
    body so long after that; KEEP_ALIVE_S after an answer the next request must have begun. Of an answer, its
    reader must take each 64 KiB within `body_timeout_s`.

    Args:
        settings: Bounds and times.
        connections: All connections of the server.
        rest: What uvicorn gives its protocols.
    """

    def __init__(
        self,
        settings: GatewaySettings,
        connections: Connections,
        **rest: Any,  # noqa: ANN401 - uvicorn's
    ) -> None:
        super().__init__(**rest)
        self._request_s = settings.body_timeout_s
        self._most_dropped = _LINGER_UPLOADS * settings.max_upload_bytes
        self._all = connections
        self._running: RequestResponseCycle | None = None
        # Of the request that is being received: anything at all, its head, all of it.
        self._begun, self._head_complete, self._complete = False, False, True
        self._keeps_alive = True  # what the newest request asks for, once it is complete
        self._overhead = self._received = self._slice = self._held = self._fields = 0
        self._refusal: str | None = None
        # Received and not parsed yet: reading was paused in the middle of it.
        self._unparsed = b""
        # Whatever comes now is dropped; why: no more is wanted, the last answer was given, the peer has gone.
        self._deaf = self.lingers = self._lost = False
        self._dropped = 0
        self._read_by = self._write_by = self._fires_at = math.inf
        self._in_body_time = False
        self._timer: asyncio.TimerHandle | None = None
        # Not a dictionary, as ASGI has it: nobody but this server's own application knows its name.
        self._extensions = cast(dict[str, dict[object, object]], {SENDER: Sender(self)})

    # The connection as a whole

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start the timer, and close the connection idle longest if there are too many."""
        self.writes = LingeringTransport(cast(asyncio.Transport, transport), self)
        wrapped = cast(asyncio.Transport, self.writes)
        super().connection_made(wrapped)
        self.flow: BoundedFlow = BoundedFlow(wrapped, self)
        self._await(self._request_s)
        self._all.join(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell every request of this connection, not the newest alone, that nobody waits for its answer."""
        self._lost = self._deaf = True
        self._all.leave(self)
        if self._timer is not None:
            self._timer.cancel()
        if self._running is not None and not self._running.response_complete:
            self._running.disconnected = True
            self._running.message_event.set()
        self.pipeline.clear()
        self._unparsed = b""
        super().connection_lost(exc)
        # They know this connection, too. Nothing that is left of it may need the search for cycles, which
        # looks through all other connections.
        self._running = self._timer = None
        self.cycle = cast(RequestResponseCycle, None)  # as uvicorn has it before the first

    def give_way(self) -> None:
        """End at once, without a word: the server needs the room."""
        self.transport.abort()

    def shutdown(self) -> None:
        """Answer what was received, and end: the server stops."""
        self._keeps_alive = False
        if self._owes_an_answer:
            self._end_after_answers()
            self._deaf = self._deaf or self._complete
        elif self.lingers:
            self.transport.abort()
        else:
            self._close_now()

    @property
    def is_lost(self) -> bool:
        """True once the peer has gone."""
        return self._lost

    def running(self, scope: object) -> RequestResponseCycle | None:
        """Return the request that runs, if it has this scope, is still to be answered, and can be."""
        cycle = self._running
        if cycle is None or cycle.scope is not scope or cycle.response_started or cycle.disconnected:
            return None
        return None if cycle.response_complete or cycle.waiting_for_100_continue else cycle

    @property
    def expects_input(self) -> bool:
        """True if the sender may be in the middle of something, and would not see the last answer."""
        more = self._begun or self.pipeline or self._unparsed or self._dropped or self._refusal
        return bool(more) and not self._lost

    @property
    def _owes_an_answer(self) -> bool:
        return bool(self.pipeline) or (self._running is not None and not self._running.response_complete)

    # Bytes in

    def data_received(self, data: bytes) -> None:
        """Parse what came, or drop it where no more is wanted."""
        if self._deaf:
            self._drop(len(data))
            return
        if not self._begun:
            self._begun = True
            if self._running is not None:
                # The request's own time comes after what is left of the time to keep alive, so one byte of
                # it gains nothing that its absence would not.
                self._read_by += self._request_s
        if len(data) <= _SLICE_BYTES and not self.flow.read_paused:
            self._parse(data)
        else:
            self._unparsed += data
            self._parse_slices()
        self._count()

    def parse_soon(self) -> None:
        """Parse what is left, then receive again."""
        if self._unparsed:
            # Not here: whoever asks is in the middle of an answer, or of parsing.
            self.loop.call_soon(self._parse_on)
        else:
            self.flow.receive_again()

    def _parse_on(self) -> None:
        self._parse_slices()
        self._count()
        if not self.flow.read_paused and not self._lost:
            self.flow.receive_again()

    def _parse_slices(self) -> None:
        rest = self._unparsed
        at = 0
        while at < len(rest) and not (self.flow.read_paused or self._deaf):
            self._parse(rest[at : at + _SLICE_BYTES])
            at += _SLICE_BYTES
        if self._deaf:
            self._drop(max(0, len(rest) - at))
            self._unparsed = b""
        else:
            self._unparsed = rest[at:]

    def _parse(self, data: bytes) -> None:
        self._slice = len(data)
        self._overhead += self._slice
        self._received += self._slice
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            # No other protocol is spoken here: the request is answered, and what follows it is not read.
            self._receive_no_more()
        except httptools.HttpParserError:
            self._refuse(self._refusal or "Invalid HTTP request received.")
        else:
            if self._overhead > MAX_OVERHEAD_BYTES and not self._deaf:
                self._refuse(f"A request must have at most {MAX_OVERHEAD_BYTES} bytes besides its body.")

    def _count(self) -> None:
        """Say how much is held of requests that are not complete."""
        size = len(self._unparsed)
        if not self._complete and not self._deaf:
            size += self._received + _HEADER_BYTES * len(self.headers)
        if size != self._held:
            self._held = size
            self._all.hold(self, size)

    # The parser's events

    def on_message_begin(self) -> None:
        """Begin a request, and count from here."""
        if self._deaf:
            return
        super().on_message_begin()
        self.scope["extensions"] = self._extensions
        self._begin_request()

    def _begin_request(self) -> None:
        self._begun, self._head_complete, self._complete = True, False, False
        self._overhead = min(self._overhead, self._slice)
        self._received = self._slice
        self._fields = 0

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep a header of the head; trailers, which come after it, are counted, and not kept."""
        if self._fields >= MAX_HEADERS:
            self._stop_parsing(f"A request must have at most {MAX_HEADERS} headers.")
        self._fields += 1
        if not self._head_complete:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Start the request, or queue it; until all of it is there, its answer ends the connection."""
        if self._deaf:
            return
        self._head_complete = True
        if len(self.pipeline) >= MAX_QUEUED:
            self._stop_parsing(f"A connection must have at most {MAX_QUEUED} requests queued.")
        self._start()

    def _start(self) -> None:
        super().on_headers_complete()
        if not self.pipeline:
            self._running = self.cycle
        self._keeps_alive, self.cycle.keep_alive = self.cycle.keep_alive and self._keeps_alive, False

    def on_body(self, body: bytes) -> None:
        """Keep a part of the body for the application."""
        self._overhead -= len(body)
        if not self._deaf:
            super().on_body(body)

    def on_message_complete(self) -> None:
        """Stop the timer: from now on an answer is awaited."""
        if self._deaf:
            return
        self._begun, self._complete, self._in_body_time = False, True, False
        self._overhead = self._received = 0
        self._end_request()
        if self._owes_an_answer:
            self._read_by = math.inf
            if not self.flow.write_paused:
                self._all.became_busy(self)
        if not self._keeps_alive:
            self._deaf = True  # it was the last request, as its sender says

    def _end_request(self) -> None:
        if not self.cycle.response_started:
            self.cycle.keep_alive = self._keeps_alive
        super().on_message_complete()

    def _stop_parsing(self, text: str) -> None:
        self._refusal = text
        raise OverflowError(text)

    # Answers

    def send_answer(self, answer: bytes, *, is_last: bool) -> None:
        """Send the whole answer to the request that runs, and end the connection if it is the last."""
        self.writes.write_whole(answer)
        if is_last:
            self.transport.close()
        self.on_response_complete()

    def on_response_complete(self) -> None:
        """Start the request that is queued, or the time in which the next one must come."""
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            return
        if self.pipeline:
            self._running, app = self.pipeline.pop()
            task = self.loop.create_task(self._running.run_asgi(app))
            task.add_done_callback(self.tasks.discard)
            self.tasks.add(task)
        elif self._deaf:
            self.transport.close()
            return
        if not self._owes_an_answer or not self._complete:
            self._await(self._request_s if self._begun else KEEP_ALIVE_S)
            self._all.became_idle(self)
        self.flow.resume_reading()

    def pause_writing(self) -> None:
        """Start the time within which the reader of the answer must take more of it."""
        super().pause_writing()
        self._write_by = self.loop.time() + self._request_s
        self._arm()
        self._all.became_idle(self)

    def resume_writing(self) -> None:
        """Go on with the answer."""
        super().resume_writing()
        self._write_by = math.inf
        if self._owes_an_answer and self._complete:
            self._all.became_busy(self)

    def _refuse(self, text: str) -> None:
        """Give up the request that is being received, and answer those before it, or this one with 400."""
        self.logger.warning(text)
        self._refusal = text
        if not self._complete and self.cycle is not None and self.cycle.scope is self.scope:
            self._give_up(self.cycle)
        self._receive_no_more()
        if not self._owes_an_answer:
            self.send_400_response(text)

    def _give_up(self, newest: RequestResponseCycle) -> None:
        """Forget a request whose body does not come to an end."""
        if self.pipeline and self.pipeline[0][0] is newest:
            self.pipeline.popleft()
        elif not newest.response_complete:
            newest.disconnected = newest.response_complete = True
            newest.message_event.set()
            if newest.response_started:  # nothing sensible follows half an answer
                self.transport.abort()

    def _receive_no_more(self) -> None:
        """Drop what comes from now on, and have the last answer that is owed end the connection."""
        self._deaf, self._complete = True, True
        self._unparsed = b""
        self._end_after_answers()

    def _end_after_answers(self) -> None:
        if self.pipeline:
            self.pipeline[0][0].keep_alive = False
        elif self._running is not None:
            self._running.keep_alive = False

    # The end

    def linger(self) -> None:
        """Receive and drop for a while, so that the sender comes to read its answer."""
        self._deaf = self.lingers = True
        self._unparsed = b""
        self._count()
        self._await(self._request_s)
        self._all.became_idle(self)
        self.flow.receive_again()

    def _drop(self, size: int) -> None:
        self._dropped += size
        if self._dropped > self._most_dropped:
            self.transport.abort()

    def _close_now(self) -> None:
        """Close, and leave what the answers before it still have to travel its time."""
        self._deaf, self._lost = True, True
        self.transport.close()
        self._await(self._request_s)

    def _await(self, seconds: float) -> None:
        self._read_by = self.loop.time() + seconds
        self._arm()

    def _arm(self) -> None:
        """Have the timer fire when the nearer of the two times is over, or before."""
        due = min(self._read_by, self._write_by)
        if due < self._fires_at:
            if self._timer is not None:
                self._timer.cancel()
            self._fires_at, self._timer = due, self.loop.call_at(due, self._expire)

    def _expire(self) -> None:
        self._fires_at, self._timer = math.inf, None
        now = self.loop.time()
        if now >= self._write_by or (now >= self._read_by and self.transport.is_closing()):
            self.transport.abort()
        elif now < self._read_by:
            self._arm()
        elif not self._owes_an_answer:
            self._close_now()
        elif self._in_body_time:
            self.transport.abort()
        else:
            # The head came in time. The application answers 408 within the body's; then it is over.
            self._in_body_time = True
            self._await(self._request_s)
