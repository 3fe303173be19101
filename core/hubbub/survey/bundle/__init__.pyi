from hubbub.survey.bundle.form import Bundle as Bundle, ENTRY as ENTRY
