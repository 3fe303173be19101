from hubbub_deploy.commands.witness.witness import add_to as add_to
