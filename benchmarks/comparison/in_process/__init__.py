"""Comparison without HTTP: throughput and scaling."""
