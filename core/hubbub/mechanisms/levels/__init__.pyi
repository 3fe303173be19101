from hubbub.mechanisms.levels.hierarchy import Hierarchy as Hierarchy
from hubbub.mechanisms.levels.levels import Levels as Levels, levels as levels
from hubbub.mechanisms.levels.set_levels import SetLevels as SetLevels
