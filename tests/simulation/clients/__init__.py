"""Clients of the simulated service and what they send."""
