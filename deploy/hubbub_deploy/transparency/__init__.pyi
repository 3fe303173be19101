from hubbub_deploy.transparency.keeper import (
    LogKeeper as LogKeeper,
    LogSettings as LogSettings,
    keeper_of as keeper_of,
    opened_log as opened_log,
)
from hubbub_deploy.transparency.reader import SeenLog as SeenLog, read_log as read_log
from hubbub_deploy.transparency.routes import log_routes as log_routes
from hubbub_deploy.transparency.witness import LogWitness as LogWitness, witness_server as witness_server
