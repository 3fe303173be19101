"""`hubbub survey`: the verbs that begin, check, design, compile and sign surveys."""

from hubbub.lazy import attach

attach(__name__)
