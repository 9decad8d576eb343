"""Start of the commands, with their entry points, flags and help."""
