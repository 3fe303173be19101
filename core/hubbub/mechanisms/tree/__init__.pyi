from hubbub.mechanisms.tree.channel import TreeChannel as TreeChannel, tree as tree
from hubbub.mechanisms.tree.nested import NestedLevels as NestedLevels, nested_levels as nested_levels
from hubbub.mechanisms.tree.shares import Purpose as Purpose, best_shares as best_shares, cells_of as cells_of
