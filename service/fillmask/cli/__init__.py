"""The fillmask command, which fills, scores or classifies texts without a server."""
