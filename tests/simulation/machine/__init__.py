"""The simulated machine: its clock, threads, disk, and the process of the service on it."""
