"""Bugs that the simulation must find."""
