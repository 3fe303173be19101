from hubbub.survey.key_value.form import ENTRY as ENTRY, KeyValue as KeyValue, check_share as check_share
