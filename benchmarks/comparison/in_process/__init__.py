"""Comparison without HTTP: throughput, operator times, peaks and scaling."""
