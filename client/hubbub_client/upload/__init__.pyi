from hubbub_client.upload.outcomes import (
    Answer as Answer,
    Correction as Correction,
    EnrolmentStatus as EnrolmentStatus,
    SentReport as SentReport,
    Status as Status,
    UploadOutcome as UploadOutcome,
)
from hubbub_client.upload.transport import (
    HttpTransport as HttpTransport,
    MAX_OUTCOMES_BYTES as MAX_OUTCOMES_BYTES,
    PlainHttp as PlainHttp,
    Response as Response,
    Transport as Transport,
    UPLOAD_S as UPLOAD_S,
    checked_url as checked_url,
)
from hubbub_client.upload.uploader import (
    BackoffState as BackoffState,
    Failed as Failed,
    Limits as Limits,
    Pending as Pending,
    Settled as Settled,
    Upload as Upload,
    Wait as Wait,
    decide as decide,
    interpret_response as interpret_response,
)
