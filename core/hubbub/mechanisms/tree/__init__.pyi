from hubbub.mechanisms.tree.channel import TreeChannel as TreeChannel, tree as tree
from hubbub.mechanisms.tree.shares import best_shares as best_shares, cells_of as cells_of
