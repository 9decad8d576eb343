"""Descriptions of the inputs and outputs of graphs."""

from __future__ import annotations

import onnx
from onnx import TensorProto, helper


def integer_tensor(name: str, *axes: str | int | None) -> onnx.ValueInfoProto:
    """Describe an int64 input or output.

    Args:
        axes: name or size of each axis, or None for any size.
    """
    return helper.make_tensor_value_info(name, TensorProto.INT64, axes)


def float_tensor(name: str, *axes: str | int | None) -> onnx.ValueInfoProto:
    """Describe a float32 input or output.

    `integer_tensor` explains the arguments.
    """
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, axes)
