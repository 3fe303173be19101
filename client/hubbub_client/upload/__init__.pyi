from hubbub_client.upload.transport import (
    HttpTransport as HttpTransport,
    MAX_OUTCOMES_BYTES as MAX_OUTCOMES_BYTES,
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
    Upload as Upload,
    interpret_response as interpret_response,
)
