"""Worlds in which a seed decides what happens, and what must hold in them."""
