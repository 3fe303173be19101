from hubbub.mechanisms.levels.levels import levels as levels
from hubbub.mechanisms.levels.set_levels import SetLevels as SetLevels
