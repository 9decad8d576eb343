"""Plain ASGI middleware and what it needs. Nothing here knows which server runs it."""
