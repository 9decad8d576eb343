"""File formats that the command reads and writes."""
