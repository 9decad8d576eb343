"""Conformance with the RFCs of HTTP."""
