"""The sockets of servers, and their stop: the same for every process with a page or a gateway."""

from __future__ import annotations

import contextlib
import signal
import socket
import threading
from collections.abc import Iterator

import uvicorn

from hubbub_deploy.errors import DeployError


def base_url(host: str, listener: socket.socket) -> str:
    """Return the address to type into a browser."""
    name = f"[{host}]" if ":" in host else host
    return f"http://{name}:{listener.getsockname()[1]}"


@contextlib.contextmanager
def stopping_politely(server: uvicorn.Server) -> Iterator[None]:
    """Turn SIGINT and SIGTERM into a stop of the server, and keep them away from what comes after.

    uvicorn hands a signal on, once it has stopped, to whoever handled it before. By default that ends the
    process at once, with files open and the last batch not counted.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(*_: object) -> None:
        server.should_exit = True

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket, bound before anything is promised.

    Raises:
        DeployError: If the address cannot be had.
    """
    if not host:  # for a socket it means every address, which nobody asks for by leaving a variable empty
        raise DeployError("host must be an address or a name, got ''")
    try:
        listener = socket.create_server(
            (host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET, backlog=2048
        )
    except (OSError, OverflowError) as error:
        raise DeployError(f"{host}:{port} cannot be listened on: {error}") from error
    listener.set_inheritable(True)
    return listener
