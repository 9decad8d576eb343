"""Finding, reading and verifying bundles."""
