"""Errors of the command line and of what it starts.

DeployError
└── AlreadyRunningError  another node owns the same files
"""

from __future__ import annotations

from hubbub.errors import AdvisedError


class DeployError(AdvisedError):
    """The command cannot go on; the message says why in one line."""


class AlreadyRunningError(DeployError):
    """The error that another node holds the data directory."""
