from hubbub_deploy.cluster_settings import ClusterSettings as ClusterSettings
from hubbub_deploy.cluster_topics import make_topic as make_topic
from hubbub_deploy.errors import DeployError as DeployError
from hubbub_deploy.files import ARCHIVE_FILE as ARCHIVE_FILE
from hubbub_deploy.node import (
    DEAD_FILE as DEAD_FILE,
    LOG_FILE as LOG_FILE,
    NodeSettings as NodeSettings,
    serve as serve,
)
