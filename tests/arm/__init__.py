"""Service on emulated ARM CPUs, started by `make arm-check`."""
