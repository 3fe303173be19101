from hubbub_deploy.commands.monitor.monitor import add_to as add_to
