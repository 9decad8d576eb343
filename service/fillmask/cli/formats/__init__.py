"""File formats of the command."""
