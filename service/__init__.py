"""The fill-mask service: what runs in production."""

__version__ = "0.1.0"
