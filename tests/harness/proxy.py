"""A port between two processes whose two ways can be shut, each by itself: a cut without root or iptables."""

from __future__ import annotations

import contextlib
import socket
import threading


class Proxy:
    """A port that leads to another one; both ways can be shut and opened again.

    Attributes:
        to_server: Set while bytes go to the server.
        to_client: Set while its answers come back.
    """

    def __init__(self, server: int) -> None:
        self._server = server
        self.to_server, self.to_client = threading.Event(), threading.Event()
        self.to_server.set()
        self.to_client.set()
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=512)
        self.port: int = self._listener.getsockname()[1]
        self._ends: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def close(self) -> None:
        """End every connection, and take no more."""
        for sock in (self._listener, *self._ends):
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
        for way in (self.to_server, self.to_client):
            way.set()
        for thread in self._threads:
            thread.join(10)
        for sock in (self._listener, *self._ends):
            sock.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(("127.0.0.1", self._server))
            except OSError:
                client.close()
                continue
            self._ends += [client, server]
            for one, other, way in ((client, server, self.to_server), (server, client, self.to_client)):
                thread = threading.Thread(target=self._pass, args=(one, other, way), daemon=True)
                self._threads.append(thread)
                thread.start()

    @staticmethod
    def _pass(one: socket.socket, other: socket.socket, way: threading.Event) -> None:
        with contextlib.suppress(OSError):
            while data := one.recv(2**16):
                way.wait()
                other.sendall(data)
        way.wait()
        for sock in (one, other):
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
