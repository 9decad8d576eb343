"""Tasks of the command, which fill, score or classify texts."""
