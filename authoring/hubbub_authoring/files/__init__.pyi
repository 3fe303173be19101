from hubbub_authoring.files.compile import TABLE_MECHANISMS as TABLE_MECHANISMS
from hubbub_authoring.files.template import (
    Draft as Draft,
    DraftAttribute as DraftAttribute,
    DraftCategory as DraftCategory,
    drafted as drafted,
)
from hubbub_authoring.files.text import survey_of as survey_of, survey_text as survey_text
from hubbub_authoring.files.toml import (
    PlannedTerms as PlannedTerms,
    decode as decode,
    parse as parse,
    read as read,
)
