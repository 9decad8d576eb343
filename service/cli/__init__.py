"""The fillmask command: fills one text, a file or a stream without a server."""
