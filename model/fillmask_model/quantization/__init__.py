"""Quantization to int8 with calibration, smoothing and rounding."""
