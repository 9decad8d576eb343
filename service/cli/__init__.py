"""The fillmask command: one text, a file, a stream."""
