from hubbub.survey.bundle.form import Bundle as Bundle
from hubbub.survey.canonical import (
    MAX_FILE_BYTES as MAX_FILE_BYTES,
    Parts as Parts,
    read_compiled as read_compiled,
)
from hubbub.survey.choice import Choice as Choice, Compared as Compared
from hubbub.survey.declared import (
    Category as Category,
    DeclaredAttribute as DeclaredAttribute,
    DeclaredMechanism as DeclaredMechanism,
    owners_of as owners_of,
)
from hubbub.survey.domain import (
    ABSENT_VALUE as ABSENT_VALUE,
    Attribute as Attribute,
    DictionaryDomain as DictionaryDomain,
    Domain as Domain,
    IntegerDomain as IntegerDomain,
    KINDS as KINDS,
    Kind as Kind,
    LabelDomain as LabelDomain,
    MAX_INTEGER as MAX_INTEGER,
    MAX_LABEL_CHARACTERS as MAX_LABEL_CHARACTERS,
    MAX_SIZE as MAX_SIZE,
    NumberDomain as NumberDomain,
    SetDomain as SetDomain,
    attribute_from_spec as attribute_from_spec,
    dictionary_of as dictionary_of,
)
from hubbub.survey.form import BaseForm as BaseForm, Form as Form, FormRequest as FormRequest
from hubbub.survey.forms import AnyEstimator as AnyEstimator, forms_by_mechanism as forms_by_mechanism
from hubbub.survey.key_value.form import KeyValue as KeyValue, check_share as check_share
from hubbub.survey.label_tree import (
    LabelTree as LabelTree,
    MAX_TREE_LEVELS as MAX_TREE_LEVELS,
    QUADTREE as QUADTREE,
)
from hubbub.survey.rules import (
    DEFAULT_LEDGERS as DEFAULT_LEDGERS,
    ANSWERED as ANSWERED,
    MAX_DEVICES as MAX_DEVICES,
    MAX_LATENESS_S as MAX_LATENESS_S,
    MAX_NAME_CHARACTERS as MAX_NAME_CHARACTERS,
    MAX_QUOTA as MAX_QUOTA,
    MAX_ROTATION as MAX_ROTATION,
    MAX_ROUNDS as MAX_ROUNDS,
    MAX_ROUND_S as MAX_ROUND_S,
    MAX_SKEW_S as MAX_SKEW_S,
    MAX_START_S as MAX_START_S,
    MAX_TITLE_CHARACTERS as MAX_TITLE_CHARACTERS,
    MAX_VERSION as MAX_VERSION,
    MISSING as MISSING,
    Rules as Rules,
    check_attributes as check_attributes,
)
from hubbub.survey.score import Score as Score, score_channel as score_channel
from hubbub.survey.sets.item_set import ItemSet as ItemSet
from hubbub.survey.signed_list import (
    MAX_LIFE_S as MAX_LIFE_S,
    MAX_LIST_BYTES as MAX_LIST_BYTES,
    Opened as Opened,
    SurveyList as SurveyList,
    digest_of as digest_of,
    in_list_order as in_list_order,
    is_key as is_key,
    open_signed as open_signed,
    public_key as public_key,
    public_text as public_text,
    read_unverified as read_unverified,
    signature_holds as signature_holds,
)
from hubbub.survey.single import Single as Single
from hubbub.survey.state import (
    MOST_STEPS as MOST_STEPS,
    StateName as StateName,
    SurveyState as SurveyState,
    duration_words as duration_words,
    index_of_round as index_of_round,
    number_of_round as number_of_round,
    round_words as round_words,
    step_of as step_of,
    survey_state as survey_state,
)
from hubbub.survey.survey import Survey as Survey
from hubbub.survey.table import (
    CrossTable as CrossTable,
    MAX_ATTRIBUTES as MAX_ATTRIBUTES,
    ReadAttributes as ReadAttributes,
    check_size as check_size,
)
from hubbub.survey.transition import (
    ASKS as ASKS,
    Asks as Asks,
    Transition as Transition,
    check_transition_size as check_transition_size,
)
