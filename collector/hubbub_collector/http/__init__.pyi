from hubbub_collector.http.connection import Connection as Connection
from hubbub_collector.http.connections import (
    Connections as Connections,
    connections_to_be_had as connections_to_be_had,
)
from hubbub_collector.http.exchange import Exchange as Exchange, Sender as Sender, SENDER as SENDER
