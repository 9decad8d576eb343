"""Fused form of a graph, for machines with the package fillmask-native."""
