from hubbub_deploy.commands.verify.verify import add_to as add_to
