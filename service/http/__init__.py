"""HTTP server: connections, request parsing, responses and middleware."""
