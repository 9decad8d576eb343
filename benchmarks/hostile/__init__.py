"""Hostile clients of the service, and what polite clients get beside them."""
