"""Graphs in ONNX: the served graph and the reference graph, with their weights."""
