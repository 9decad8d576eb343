"""Simulation of the serving core on virtual time, from a seed."""
