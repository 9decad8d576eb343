"""The fields of bundle.json, taken by name and type; whatever is left over is refused."""

import math
from typing import Any, NoReturn

from service.errors import BundleError


def refuse(reason: str) -> NoReturn:
    """Raise the BundleError that gives this reason."""
    raise BundleError(f"The bundle is refused: {reason}.")


class BundleFields:
    """A JSON object whose fields are taken one by one, by type, until none is left."""

    def __init__(self, value: object, where: str) -> None:
        if not isinstance(value, dict):
            refuse(f"{where or 'bundle.json'} must be an object")
        self.values: dict[str, Any] = value
        self._where = where
        self._taken: set[str] = set()

    def _name(self, name: str) -> str:
        return f"{self._where}.{name}" if self._where else name

    def _take(self, name: str, kind: type, expected: str) -> Any:
        if name not in self.values:
            refuse(f"{self._name(name)} is missing")
        value = self.values[name]
        # type(), not isinstance(): true is not a number
        if type(value) is not kind:
            refuse(f"{self._name(name)} must be {expected}")
        self._taken.add(name)
        return value

    def text(self, name: str) -> str:
        """A text."""
        text: str = self._take(name, str, "a text")
        return text

    def boolean(self, name: str) -> bool:
        """True or false."""
        boolean: bool = self._take(name, bool, "true or false")
        return boolean

    def integer(self, name: str, least: int = 0) -> int:
        """A whole number that is not below `least`."""
        integer: int = self._take(name, int, "a whole number")
        if integer < least:
            refuse(f"{self._name(name)} must be at least {least}")
        return integer

    def number(self, name: str) -> float:
        """A finite number."""
        kind = int if type(self.values.get(name)) is int else float
        try:
            number = float(self._take(name, kind, "a number"))
        except OverflowError:
            number = math.inf
        if not math.isfinite(number):
            refuse(f"{self._name(name)} must be a finite number")
        return number

    def array(self, name: str) -> list[Any]:
        """A list of whatever values."""
        array: list[Any] = self._take(name, list, "a list")
        return array

    def object(self, name: str) -> "BundleFields":
        """An object, to be read like this one."""
        return BundleFields(self._take(name, dict, "an object"), self._name(name))

    def end(self) -> None:
        """Refuse what has not been taken."""
        unknown = sorted(set(self.values) - self._taken)
        if unknown:
            refuse(f"{self._name(unknown[0])[:100]} is not a field this fillmask knows")
