from hubbub.mechanisms.hashing.hash_pool import MAX_SYMBOLS as MAX_SYMBOLS
from hubbub.mechanisms.hashing.inverse import HashInverse as HashInverse
from hubbub.mechanisms.hashing.local_hashing import (
    LocalHashing as LocalHashing,
    local_hashing as local_hashing,
)
