from hubbub_deploy.commands.agent.agent import add_to as add_to
from hubbub_deploy.commands.agent.answer import value_of as value_of
