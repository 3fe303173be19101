from hubbub.mechanisms.hashing.inverse import HashInverse as HashInverse
from hubbub.mechanisms.hashing.local_hashing import local_hashing as local_hashing
