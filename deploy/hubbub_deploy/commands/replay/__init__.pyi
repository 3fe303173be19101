from hubbub_deploy.commands.replay.replay import add_to as add_to
