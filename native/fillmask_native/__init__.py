"""Fused int8 operators for onnxruntime, in the domain `fillmask`.

`onnxruntime.SessionOptions.register_custom_ops_library` takes `LIBRARY`. A graph needs a certain
version of the operators. `OPERATORS_VERSION` is the version of this package.
"""

import ctypes
import functools
from pathlib import Path

OPERATORS_VERSION = 1
LIBRARY = Path(__file__).with_name("operators.so")


@functools.cache
def _library() -> ctypes.CDLL:
    library = ctypes.CDLL(str(LIBRARY))
    library.fillmask_native_instruction_set.restype = ctypes.c_char_p
    return library


def instruction_set() -> str:
    """Return the name of the CPU's instruction set that the operators use.

    Raises:
        OSError: the library cannot be loaded.
    """
    name: bytes = _library().fillmask_native_instruction_set()
    return name.decode()


def is_fast() -> bool:
    """Return whether the operators are faster than onnxruntime's own operators on this CPU.

    Raises:
        OSError: the library cannot be loaded.
    """
    return bool(_library().fillmask_native_is_fast())
