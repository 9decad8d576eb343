"""The fill-mask service, as it runs in production."""

__version__ = "0.1.0"
