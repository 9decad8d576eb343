"""The service on emulated ARM CPUs: `make arm-check`."""
