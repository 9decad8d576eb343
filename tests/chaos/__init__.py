"""The real process under load, faults and signals."""
