"""Reader of the fields of a checkpoint's config.json."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from fillmask_model.encoder.config import Activation

T = TypeVar("T")

ACTIVATIONS: dict[str, Activation] = {
    "gelu": "gelu_erf",
    "gelu_python": "gelu_erf",
    "gelu_new": "gelu_tanh",
    "gelu_fast": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "silu": "silu",
    "swish": "silu",
    "relu": "relu",
}
_COMMON_SIZES = {
    "vocab_size": "vocab_size",
    "d_model": "hidden_size",
    "num_layers": "num_hidden_layers",
    "num_heads": "num_attention_heads",
    "d_ff": "intermediate_size",
    "max_positions": "max_position_embeddings",
}


class Fields:
    """Reader of the fields of an object in a config.json.

    A family reads the fields that its modelling code reads. Other fields have no effect there, so
    they have none here. A field that is missing or invalid is a ValueError with its name.

    Args:
        values: the object.
        path: prefix of the fields' names in error messages.
    """

    def __init__(self, values: Mapping[str, Any], path: str = "") -> None:
        self._values = values
        self.path = path

    def items(self) -> Iterable[tuple[str, Any]]:
        return self._values.items()

    def section(self, name: str) -> Fields:
        """Return the reader of the object in a field, which is empty for a missing field."""
        value: Any = self.get(name, {})
        if not isinstance(value, dict):
            raise ValueError(f"{self.path}{name} must be an object (got {value!r})")  # noqa: TRY004 - an invalid file is a ValueError
        return Fields(value, f"{self.path}{name}.")

    def required(self, name: str) -> Any:
        """Return the value of a required field."""
        value = self._values.get(name)
        if value is None:
            raise ValueError(f"{self.path}{name} is missing; add it to config.json")
        return value

    def common(self, *, tied: bool = True) -> dict[str, Any]:
        """Return the sizes and `tied` of most families by their names in `EncoderConfig`.

        Args:
            tied: value of `tied` without the field tie_word_embeddings.
        """
        sizes = {ours: self.required(theirs) for ours, theirs in _COMMON_SIZES.items()}
        return sizes | {"tied": self.get("tie_word_embeddings", default=tied)}

    def expect_encoder(self) -> None:
        """Check that the model is no decoder."""
        for name in ("is_decoder", "add_cross_attention"):
            self.expect(name, False)  # noqa: FBT003 - a value of the file

    def get(self, name: str, default: T) -> Any | T:
        """Return the value of an optional field.

        The default replaces a missing field and null.
        """
        value = self._values.get(name)
        return default if value is None else value

    def expect(self, name: str, *allowed: Any) -> None:
        """Check that a field is missing or has one of the allowed values."""
        value = self.get(name, allowed[0])
        # compare types too, because 0 equals False
        if not any(value == one and type(value) is type(one) for one in allowed):
            shown = " or ".join(repr(one) for one in allowed)
            raise ValueError(f"{self.path}{name} must be {shown} (got {value!r})")

    def activation(self, name: str, default: str = "gelu") -> Activation:
        """Return the activation that a field names."""
        value = self.get(name, default)
        if not isinstance(value, str) or value not in ACTIVATIONS:
            raise ValueError(
                f"{self.path}{name} must be one of {', '.join(ACTIVATIONS)} (got {value!r})"
            )
        return ACTIVATIONS[value]

    def number(self, name: str, default: float) -> float:
        """Return the number in a field as a float."""
        return self._to_float(name, self.get(name, default))

    def positive(self, name: str, default: float | None = None) -> float:
        """Return the positive finite number in a field, which is required without a default."""
        value = self.required(name) if default is None else self.get(name, default)
        number = self._to_float(name, value)
        if not 0 < number < math.inf:
            raise ValueError(f"{self.path}{name} must be a finite number above 0 (got {value!r})")
        return number

    def whole_number(self, name: str, default: int) -> int:
        """Return the whole number in a field."""
        value: object = self.get(name, default)
        if type(value) is not int:
            raise ValueError(f"{self.path}{name} must be a whole number (got {value!r})")
        return value

    def _to_float(self, name: str, value: object) -> float:
        if type(value) not in {int, float}:
            raise ValueError(f"{self.path}{name} must be a number (got {value!r})")
        try:
            return float(value)  # type: ignore[arg-type] # the type is int or float
        except OverflowError:
            raise ValueError(f"{self.path}{name} must be below 1.8e308 (got {value!r})") from None
