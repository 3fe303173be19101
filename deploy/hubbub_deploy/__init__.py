"""The deployments: the hubbub command, the embedded node, the cluster."""

from hubbub.lazy import attach

attach(__name__)
