"""HTTP server with connections, request parsing, responses and middleware."""
