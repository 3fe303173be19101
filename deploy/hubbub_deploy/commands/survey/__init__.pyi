from hubbub_deploy.commands.survey.survey import add_to as add_to
