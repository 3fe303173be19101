from hubbub_lab.texts.grammar import (
    number_of as number_of,
    plain as plain,
    sql_name as sql_name,
    whole_of as whole_of,
)
from hubbub_lab.texts.terminal import results as results, talk as talk
