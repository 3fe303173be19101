from hubbub_deploy.commands.evaluate.evaluate import add_to as add_to
