"""HTTP endpoints, request and response bodies, and pages."""
