"""The fillmask command, which fills one text, a file or a stream without a server."""
