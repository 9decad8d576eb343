"""Writer of a graph's weights to an external file during the construction of the graph.

protobuf limits a graph to 2 GB. A runtime maps an external file into memory, but copies weights
that the graph contains.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper

# smaller tensors stay in the graph, because shape inference needs some of them
SMALLEST_BYTES = 1024
ALIGNMENT_BYTES = 64  # width of a vector register


class WeightFile:
    """Writer that appends arrays to a file.

    Args:
        path: file to overwrite, in the directory of the graph.
    """

    def __init__(self, path: Path) -> None:
        self._name = path.name
        self._file = path.open("wb")
        self._offsets: dict[str, int] = {}  # offset in bytes, by name of the array
        self.close = self._file.close

    def add(self, name: str, values: NDArray[Any]) -> onnx.TensorProto | None:
        """Write an array to the file, unless the array is smaller than SMALLEST_BYTES.

        Returns:
            The tensor that refers to the array, or None for an array that stays in the graph.
        """
        if values.nbytes < SMALLEST_BYTES:
            return None
        self._file.write(b"\0" * (-self._file.tell() % ALIGNMENT_BYTES))
        self._offsets[name] = self._file.tell()
        np.ascontiguousarray(values).tofile(self._file)
        return self._tensor(name, self._offsets[name], values)

    def add_part(self, name: str, whole: str, values: NDArray[Any], start: int) -> onnx.TensorProto:
        """Return a tensor that refers to some rows of an array in the file.

        Args:
            whole: name of the array.
            values: rows of the array.
            start: index of the first row in the array.
        """
        return self._tensor(name, self._offsets[whole] + start * values[0].nbytes, values)

    def _tensor(self, name: str, offset: int, values: NDArray[Any]) -> onnx.TensorProto:
        place = {"location": self._name, "offset": offset, "length": values.nbytes}
        return TensorProto(
            name=name,
            dims=values.shape,
            data_type=helper.np_dtype_to_tensor_dtype(values.dtype),
            data_location=TensorProto.EXTERNAL,
            external_data=[
                onnx.StringStringEntryProto(key=key, value=str(value))
                for key, value in place.items()
            ],
        )
