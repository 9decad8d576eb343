"""Configurations as people publish them."""
