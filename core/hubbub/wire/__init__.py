"""The bytes that travel: reports, uploads, records, packing and the partition map."""

from typing import TYPE_CHECKING

from hubbub.lazy import attach

if TYPE_CHECKING:
    from hubbub.wire.frames import Frame, check_elements
    from hubbub.wire.packing import pack, unpack
    from hubbub.wire.partition_map import PartitionMap, TopicPeriod
    from hubbub.wire.record import (
        NO_ROUND,
        ReportsRecord,
        SealRecord,
        Segment,
        SurveyRecord,
        Voucher,
        decode_record,
        encode_record,
    )
    from hubbub.wire.report import (
        DIGEST_BYTES,
        ID_BYTES,
        MAX_SURVEYS,
        OUTCOMES,
        SHORT_REPORT,
        WIDE_REPORT,
        Malformed,
        Outcome,
        Report,
        decode_report,
        decode_response,
        decode_surveys,
        decode_upload,
        encode_report,
        encode_response,
        encode_surveys,
        encode_upload,
        set_reports,
        short_reports,
        side_by_side,
        wide_reports,
    )
    from hubbub.wire.token_upload import decode_token_upload, encode_token_upload, is_token_upload

__all__ = [
    "DIGEST_BYTES",
    "ID_BYTES",
    "MAX_SURVEYS",
    "NO_ROUND",
    "OUTCOMES",
    "SHORT_REPORT",
    "WIDE_REPORT",
    "Frame",
    "Malformed",
    "Outcome",
    "PartitionMap",
    "Report",
    "ReportsRecord",
    "SealRecord",
    "Segment",
    "SurveyRecord",
    "TopicPeriod",
    "Voucher",
    "check_elements",
    "decode_record",
    "decode_report",
    "decode_response",
    "decode_surveys",
    "decode_token_upload",
    "decode_upload",
    "encode_record",
    "encode_report",
    "encode_response",
    "encode_surveys",
    "encode_token_upload",
    "encode_upload",
    "is_token_upload",
    "pack",
    "set_reports",
    "short_reports",
    "side_by_side",
    "unpack",
    "wide_reports",
]

attach(
    __name__,
    {
        "hubbub.wire.frames": (
            "Frame",
            "check_elements",
        ),
        "hubbub.wire.packing": (
            "pack",
            "unpack",
        ),
        "hubbub.wire.partition_map": (
            "PartitionMap",
            "TopicPeriod",
        ),
        "hubbub.wire.record": (
            "NO_ROUND",
            "ReportsRecord",
            "SealRecord",
            "Segment",
            "SurveyRecord",
            "Voucher",
            "decode_record",
            "encode_record",
        ),
        "hubbub.wire.report": (
            "DIGEST_BYTES",
            "ID_BYTES",
            "MAX_SURVEYS",
            "Malformed",
            "OUTCOMES",
            "Outcome",
            "Report",
            "SHORT_REPORT",
            "WIDE_REPORT",
            "decode_report",
            "decode_response",
            "decode_surveys",
            "decode_upload",
            "encode_report",
            "encode_response",
            "encode_surveys",
            "encode_upload",
            "set_reports",
            "short_reports",
            "side_by_side",
            "wide_reports",
        ),
        "hubbub.wire.token_upload": (
            "decode_token_upload",
            "encode_token_upload",
            "is_token_upload",
        ),
    },
)
