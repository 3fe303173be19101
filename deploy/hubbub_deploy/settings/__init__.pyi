from hubbub_deploy.settings.options import NodeOptions as NodeOptions
from hubbub_deploy.settings.sources import (
    Sourced as Sourced,
    gather as gather,
    node_settings as node_settings,
    read_file as read_file,
    refuse_unknown_variables as refuse_unknown_variables,
)
from hubbub_deploy.settings.table import (
    GATEWAY as GATEWAY,
    NODE as NODE,
    Setting as Setting,
    markdown as markdown,
)
