"""Tests of the service's process under load, faults and signals."""
