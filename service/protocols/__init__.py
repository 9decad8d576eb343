"""Wire formats of other servers, as thin adapters of one use case."""
