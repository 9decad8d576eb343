"""Training in steps of a few minutes on a GPU that is borrowed for a short time."""
