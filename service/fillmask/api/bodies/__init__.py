"""Request and response bodies of the service's own endpoints."""
