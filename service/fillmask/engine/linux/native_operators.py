"""The optional package fillmask-native, whose operators compute int8 layers in one step."""

from dataclasses import dataclass
from pathlib import Path


class OperatorsUnavailableError(Exception):
    """Error for operators that this machine does not have. The message is the reason."""


@dataclass(frozen=True, slots=True)
class NativeOperators:
    """Library for onnxruntime and the CPU's instruction set that its operators use."""

    library: Path
    instruction_set: str


def find_operators(version: int, *, fast: bool = True) -> NativeOperators:
    """Return the operators of the installed package.

    Args:
        version: version of the operators in a graph.
        fast: whether the operators must be faster than those of onnxruntime on this CPU.

    Raises:
        OperatorsUnavailableError: the package is missing, has other operators, does not fit this
            machine or is slow on it.
    """
    try:
        import fillmask_native  # noqa: PLC0415 - an optional package

        if (found := fillmask_native.OPERATORS_VERSION) == version:
            name, is_fast = fillmask_native.instruction_set(), fillmask_native.is_fast()
            operators = NativeOperators(fillmask_native.LIBRARY, name)
    except Exception as error:  # noqa: BLE001 - pip may leave any part of a package
        if isinstance(error, ModuleNotFoundError) and error.name == "fillmask_native":
            raise OperatorsUnavailableError("fillmask-native is not installed") from None
        raise OperatorsUnavailableError(
            f"fillmask-native cannot be loaded: {error}; remove it or install it again"
        ) from None
    if found != version:
        raise OperatorsUnavailableError(
            f"fillmask-native must have version {version} of the operators (got version {found})"
        )
    if fast and not is_fast:
        raise OperatorsUnavailableError("this CPU has no instructions for which they are faster")
    return operators
