from hubbub_collector.http.acceptor import Acceptor as Acceptor
from hubbub_collector.http.connection import Connection as Connection
from hubbub_collector.http.connections import (
    Connections as Connections,
    connections_to_be_had as connections_to_be_had,
)
from hubbub_collector.http.door import Door as Door, DoorConnection as DoorConnection
from hubbub_collector.http.exchange import Exchange as Exchange
from hubbub_collector.http.outcome_headers import (
    outcome_head as outcome_head,
    outcome_headers as outcome_headers,
)
from hubbub_collector.http.sender import SENDER as SENDER, Sender as Sender
