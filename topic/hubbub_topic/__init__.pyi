from hubbub_topic.bounded import BoundedLog as BoundedLog
from hubbub_topic.errors import (
    LogError as LogError,
    LogLockedError as LogLockedError,
    LogVersionError as LogVersionError,
)
from hubbub_topic.log import Log as Log
from hubbub_topic.rows import Cut as Cut
from hubbub_topic.sqlite import SqliteLog as SqliteLog
