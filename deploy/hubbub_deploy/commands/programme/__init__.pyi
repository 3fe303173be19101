from hubbub_deploy.commands.programme.programme import (
    add_to as add_to,
    compiled as compiled,
    queries as queries,
)
