from hubbub.transparency.entry import (
    Entry as Entry,
    hash_of as hash_of,
    list_entry as list_entry,
    survey_entry as survey_entry,
)
from hubbub.transparency.note import (
    Checkpoint as Checkpoint,
    KeyKind as KeyKind,
    LOG_KEY as LOG_KEY,
    LogFault as LogFault,
    LogPolicy as LogPolicy,
    MAX_NOTE_BYTES as MAX_NOTE_BYTES,
    NotLoggedError as NotLoggedError,
    Note as Note,
    NoteKey as NoteKey,
    WITNESS_KEY as WITNESS_KEY,
    Witnessed as Witnessed,
    is_name as is_name,
    number_of as number_of,
    path_of as path_of,
    path_text as path_text,
    proof_text as proof_text,
)
from hubbub.transparency.tiles import (
    LOG_PATH as LOG_PATH,
    PROOF_SUFFIX as PROOF_SUFFIX,
    TILE as TILE,
    bundle as bundle,
    entries_of as entries_of,
    tile_path as tile_path,
    tile_place as tile_place,
)
from hubbub.transparency.tree import (
    EMPTY_ROOT as EMPTY_ROOT,
    Read as Read,
    consistency_path as consistency_path,
    grown as grown,
    inclusion_path as inclusion_path,
    leaf_hash as leaf_hash,
    only_grew as only_grew,
    root_by as root_by,
    root_of as root_of,
)
