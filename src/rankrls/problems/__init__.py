"""Learning problems: one file is one way to set a problem up and solve it for every alpha."""
