from hubbub_deploy.commands.topic.topic import add_to as add_to
