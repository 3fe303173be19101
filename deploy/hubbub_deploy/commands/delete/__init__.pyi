from hubbub_deploy.commands.delete.delete import add_to as add_to
