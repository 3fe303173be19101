from hubbub.estimation.trees.tree import Moments as Moments, Tree as Tree, added_up as added_up
