"""Fill-mask service: the production code."""

__version__ = "0.1.0"
