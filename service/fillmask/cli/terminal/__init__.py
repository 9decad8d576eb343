"""Tables of results for a terminal."""
