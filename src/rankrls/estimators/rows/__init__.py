"""Training rows, in memory or in blocks: read, checked, cut into folds and turned into a learning problem."""
