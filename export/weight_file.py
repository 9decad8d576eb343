"""A graph's weights in a file beside it, written as the graph is built.

A graph above protobuf's 2 GB could not hold them, and a runtime maps the file where it would make
copies of weights within the graph.
"""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper

# what shapes depend on must lie in the graph itself
SMALLEST_BYTES = 1024
ALIGNMENT_BYTES = 64  # a vector register's, for runtimes that map the file


class WeightFile:
    """Appends arrays to a file.

    Args:
        path: the file, made anew; the graph will lie in the same directory.
    """

    def __init__(self, path: Path) -> None:
        self._name = path.name
        self._file = path.open("wb")
        self._offsets: dict[str, int] = {}  # of what was written

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._file.close()

    def add(self, name: str, values: NDArray[Any]) -> onnx.TensorProto | None:
        """Write an array; the tensor that stands for it in the graph, or None for a small one."""
        if values.nbytes < SMALLEST_BYTES:
            return None
        self._file.write(b"\0" * (-self._file.tell() % ALIGNMENT_BYTES))
        self._offsets[name] = self._file.tell()
        np.ascontiguousarray(values).tofile(self._file)
        return self._tensor(name, self._offsets[name], values)

    def add_part(self, name: str, whole: str, values: NDArray[Any], start: int) -> onnx.TensorProto:
        """A tensor for some rows of an array that was written before.

        Args:
            name: the part's.
            whole: the array's name.
            values: the rows.
            start: the number of the first in the array.
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
