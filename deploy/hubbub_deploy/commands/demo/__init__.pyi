from hubbub_deploy.commands.demo.demo import add_to as add_to
