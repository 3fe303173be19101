"""The survey, its domains and forms, its canonical bytes and signed lists."""

from typing import TYPE_CHECKING

from hubbub.lazy import attach

if TYPE_CHECKING:
    from hubbub.survey.canonical import Parts
    from hubbub.survey.choice import Choice, Compared
    from hubbub.survey.compiled_file import MAX_FILE_BYTES, read_compiled
    from hubbub.survey.declared import Category, DeclaredAttribute, DeclaredMechanism, owners_of
    from hubbub.survey.domain import (
        KINDS,
        MAX_INTEGER,
        MAX_LABEL_CHARACTERS,
        MAX_SIZE,
        Attribute,
        Domain,
        IntegerDomain,
        Kind,
        LabelDomain,
        NumberDomain,
        attribute_from_spec,
    )
    from hubbub.survey.form import BaseForm, Form, FormRequest
    from hubbub.survey.forms import AnyEstimator, forms_by_mechanism
    from hubbub.survey.rules import (
        MAX_DEVICES,
        MAX_LATENESS_S,
        MAX_NAME_CHARACTERS,
        MAX_QUOTA,
        MAX_ROUND_S,
        MAX_ROUNDS,
        MAX_SKEW_S,
        MAX_START_S,
        MAX_TITLE_CHARACTERS,
        MAX_VERSION,
        MISSING,
        Rules,
        check_attributes,
    )
    from hubbub.survey.score import Score, score_channel
    from hubbub.survey.signed_list import (
        MAX_LIFE_S,
        MAX_LIST_BYTES,
        Opened,
        SurveyList,
        digest_of,
        open_signed,
        public_key,
        public_text,
        read_unverified,
    )
    from hubbub.survey.single import Single
    from hubbub.survey.state import StateName, SurveyState, duration_words, round_words, survey_state
    from hubbub.survey.survey import Survey
    from hubbub.survey.table import MAX_ATTRIBUTES, CrossTable, check_size

__all__ = [
    "KINDS",
    "MAX_ATTRIBUTES",
    "MAX_DEVICES",
    "MAX_FILE_BYTES",
    "MAX_INTEGER",
    "MAX_LABEL_CHARACTERS",
    "MAX_LATENESS_S",
    "MAX_LIFE_S",
    "MAX_LIST_BYTES",
    "MAX_NAME_CHARACTERS",
    "MAX_QUOTA",
    "MAX_ROUNDS",
    "MAX_ROUND_S",
    "MAX_SIZE",
    "MAX_SKEW_S",
    "MAX_START_S",
    "MAX_TITLE_CHARACTERS",
    "MAX_VERSION",
    "MISSING",
    "AnyEstimator",
    "Attribute",
    "BaseForm",
    "Category",
    "Choice",
    "Compared",
    "CrossTable",
    "DeclaredAttribute",
    "DeclaredMechanism",
    "Domain",
    "Form",
    "FormRequest",
    "IntegerDomain",
    "Kind",
    "LabelDomain",
    "NumberDomain",
    "Opened",
    "Parts",
    "Rules",
    "Score",
    "Single",
    "StateName",
    "Survey",
    "SurveyList",
    "SurveyState",
    "attribute_from_spec",
    "check_attributes",
    "check_size",
    "digest_of",
    "duration_words",
    "forms_by_mechanism",
    "open_signed",
    "owners_of",
    "public_key",
    "public_text",
    "read_compiled",
    "read_unverified",
    "round_words",
    "score_channel",
    "survey_state",
]

attach(
    __name__,
    {
        "hubbub.survey.canonical": ("Parts",),
        "hubbub.survey.choice": (
            "Choice",
            "Compared",
        ),
        "hubbub.survey.compiled_file": (
            "MAX_FILE_BYTES",
            "read_compiled",
        ),
        "hubbub.survey.declared": (
            "Category",
            "DeclaredAttribute",
            "DeclaredMechanism",
            "owners_of",
        ),
        "hubbub.survey.domain": (
            "Attribute",
            "Domain",
            "IntegerDomain",
            "KINDS",
            "Kind",
            "LabelDomain",
            "MAX_INTEGER",
            "MAX_LABEL_CHARACTERS",
            "MAX_SIZE",
            "NumberDomain",
            "attribute_from_spec",
        ),
        "hubbub.survey.form": (
            "BaseForm",
            "Form",
            "FormRequest",
        ),
        "hubbub.survey.forms": (
            "AnyEstimator",
            "forms_by_mechanism",
        ),
        "hubbub.survey.rules": (
            "MAX_DEVICES",
            "MAX_LATENESS_S",
            "MAX_NAME_CHARACTERS",
            "MAX_QUOTA",
            "MAX_ROUNDS",
            "MAX_ROUND_S",
            "MAX_SKEW_S",
            "MAX_START_S",
            "MAX_TITLE_CHARACTERS",
            "MAX_VERSION",
            "MISSING",
            "Rules",
            "check_attributes",
        ),
        "hubbub.survey.score": (
            "Score",
            "score_channel",
        ),
        "hubbub.survey.signed_list": (
            "MAX_LIFE_S",
            "MAX_LIST_BYTES",
            "Opened",
            "SurveyList",
            "digest_of",
            "open_signed",
            "public_key",
            "public_text",
            "read_unverified",
        ),
        "hubbub.survey.single": ("Single",),
        "hubbub.survey.state": (
            "StateName",
            "SurveyState",
            "duration_words",
            "round_words",
            "survey_state",
        ),
        "hubbub.survey.survey": ("Survey",),
        "hubbub.survey.table": (
            "CrossTable",
            "MAX_ATTRIBUTES",
            "check_size",
        ),
    },
)
