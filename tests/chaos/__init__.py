"""Tests of the real process under load, faults and signals."""
