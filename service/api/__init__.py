"""Endpoints, request and response bodies, and pages."""
