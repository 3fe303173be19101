from hubbub_deploy.commands.log.log import add_to as add_to
from hubbub_deploy.commands.log.options import (
    add_keeping as add_keeping,
    add_keygen as add_keygen,
    add_policy as add_policy,
    keeping as keeping,
    named_key as named_key,
    policy_of as policy_of,
)
