"""Discovery, reading and verification of bundles."""
