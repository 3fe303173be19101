"""Trees of levels: one fit over all of them, and the variances of what it says, in O(K)."""
