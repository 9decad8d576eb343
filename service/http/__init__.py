"""The server process: connections, requests and responses as bytes."""
