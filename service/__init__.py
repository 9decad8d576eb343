"""Fill-mask service, with an HTTP server and a command for texts and files."""

__version__ = "0.1.0"
