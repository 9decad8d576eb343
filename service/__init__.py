"""Fill-mask service, with an HTTP server and a command for texts and files."""

__distribution__ = "fillmask"  # service/startup/entry_points.py reads this line
__version__ = "0.1.0"
