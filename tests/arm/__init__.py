"""Checks of the service on emulated ARM CPUs, run by `make arm-check`."""
