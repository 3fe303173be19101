from hubbub.checking.document import (
    Checked as Checked,
    SLACK as SLACK,
    WrongPlace as WrongPlace,
    check_release as check_release,
    column_of as column_of,
    compare as compare,
    guarded as guarded,
    slack_of as slack_of,
)
from hubbub.checking.scores import CellFamily as CellFamily, families as families
