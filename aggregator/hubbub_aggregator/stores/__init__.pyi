from hubbub_aggregator.stores.archive import SURVEY_ROW as SURVEY_ROW, SqliteArchive as SqliteArchive
from hubbub_aggregator.stores.disk import has_no_room as has_no_room
from hubbub_aggregator.stores.recounts import RecountFolder as RecountFolder
from hubbub_aggregator.stores.redis_connection import (
    as_store_error as as_store_error,
    clocks as clocks,
    connected as connected,
)
from hubbub_aggregator.stores.redis_connection import (
    delete_keys as delete_keys,
    namespace_keys as namespace_keys,
)
from hubbub_aggregator.stores.redis_store import RedisStore as RedisStore
from hubbub_aggregator.stores.sqlite_dead_letters import SqliteDeadTopic as SqliteDeadTopic
from hubbub_aggregator.stores.sqlite_store import SqliteStore as SqliteStore
from hubbub_aggregator.stores.transparency import (
    TRANSPARENCY_FILE as TRANSPARENCY_FILE,
    TransparencyLog as TransparencyLog,
    enter as enter,
    enter_erased as enter_erased,
)
