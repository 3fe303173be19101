from hubbub.wire.counts import (
    PublicCounts as PublicCounts,
    decode_counts as decode_counts,
    encode_counts as encode_counts,
)
from hubbub.wire.frames import Frame as Frame, check_elements as check_elements
from hubbub.wire.packing import pack as pack, unpack as unpack
from hubbub.wire.partition_map import PartitionMap as PartitionMap, TopicPeriod as TopicPeriod
from hubbub.wire.record import (
    NO_ROUND as NO_ROUND,
    ReportsRecord as ReportsRecord,
    SealRecord as SealRecord,
    Segment as Segment,
    SurveyRecord as SurveyRecord,
    Voucher as Voucher,
    decode_record as decode_record,
    encode_record as encode_record,
)
from hubbub.wire.report import (
    DIGEST_BYTES as DIGEST_BYTES,
    ID_BYTES as ID_BYTES,
    MAX_SURVEYS as MAX_SURVEYS,
    Malformed as Malformed,
    OUTCOMES as OUTCOMES,
    Outcome as Outcome,
    Report as Report,
    SHORT_REPORT as SHORT_REPORT,
    WIDE_REPORT as WIDE_REPORT,
    decode_report as decode_report,
    decode_response as decode_response,
    decode_surveys as decode_surveys,
    decode_upload as decode_upload,
    encode_report as encode_report,
    encode_response as encode_response,
    encode_surveys as encode_surveys,
    encode_symbol as encode_symbol,
    encode_upload as encode_upload,
    set_reports as set_reports,
    short_reports as short_reports,
    side_by_side as side_by_side,
    wide_reports as wide_reports,
)
from hubbub.wire.token_upload import (
    decode_token_upload as decode_token_upload,
    encode_token_upload as encode_token_upload,
    is_token_upload as is_token_upload,
)
