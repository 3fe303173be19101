"""The deployments: the hubbub command, the embedded node, the cluster."""

from typing import TYPE_CHECKING

from hubbub.lazy import attach

if TYPE_CHECKING:
    from hubbub_deploy.cluster_settings import ClusterSettings
    from hubbub_deploy.cluster_topics import make_topic
    from hubbub_deploy.errors import DeployError
    from hubbub_deploy.files import ARCHIVE_FILE
    from hubbub_deploy.node import DEAD_FILE, LOG_FILE, NodeSettings, serve

__all__ = [
    "ARCHIVE_FILE",
    "DEAD_FILE",
    "LOG_FILE",
    "ClusterSettings",
    "DeployError",
    "NodeSettings",
    "make_topic",
    "serve",
]

attach(
    __name__,
    {
        "hubbub_deploy.files": ("ARCHIVE_FILE",),
        "hubbub_deploy.cluster_settings": ("ClusterSettings",),
        "hubbub_deploy.cluster_topics": ("make_topic",),
        "hubbub_deploy.errors": ("DeployError",),
        "hubbub_deploy.node": (
            "DEAD_FILE",
            "LOG_FILE",
            "NodeSettings",
            "serve",
        ),
    },
)
