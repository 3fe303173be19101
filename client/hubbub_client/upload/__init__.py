"""The upload: decide when to send, send within a time limit, read the answer."""

from typing import TYPE_CHECKING

from hubbub.lazy import attach

if TYPE_CHECKING:
    from hubbub_client.upload.outcomes import (
        Answer,
        Correction,
        EnrolmentStatus,
        SentReport,
        Status,
        UploadOutcome,
    )
    from hubbub_client.upload.transport import (
        MAX_OUTCOMES_BYTES,
        UPLOAD_S,
        HttpTransport,
        PlainHttp,
        Response,
        Transport,
        checked_url,
    )
    from hubbub_client.upload.uploader import (
        BackoffState,
        Failed,
        Limits,
        Pending,
        Settled,
        Upload,
        Wait,
        decide,
        interpret_response,
    )

__all__ = [
    "MAX_OUTCOMES_BYTES",
    "UPLOAD_S",
    "Answer",
    "BackoffState",
    "Correction",
    "EnrolmentStatus",
    "Failed",
    "HttpTransport",
    "Limits",
    "Pending",
    "PlainHttp",
    "Response",
    "SentReport",
    "Settled",
    "Status",
    "Transport",
    "Upload",
    "UploadOutcome",
    "Wait",
    "checked_url",
    "decide",
    "interpret_response",
]

attach(
    __name__,
    {
        "hubbub_client.upload.outcomes": (
            "Answer",
            "Correction",
            "EnrolmentStatus",
            "SentReport",
            "Status",
            "UploadOutcome",
        ),
        "hubbub_client.upload.transport": (
            "HttpTransport",
            "MAX_OUTCOMES_BYTES",
            "PlainHttp",
            "Response",
            "Transport",
            "UPLOAD_S",
            "checked_url",
        ),
        "hubbub_client.upload.uploader": (
            "BackoffState",
            "Failed",
            "Limits",
            "Pending",
            "Settled",
            "Upload",
            "Wait",
            "decide",
            "interpret_response",
        ),
    },
)
