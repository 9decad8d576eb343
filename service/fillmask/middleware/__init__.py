"""ASGI middleware for requests over HTTP."""
