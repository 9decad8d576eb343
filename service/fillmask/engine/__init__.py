"""Admission, queue, batches and the ONNX runtime."""
