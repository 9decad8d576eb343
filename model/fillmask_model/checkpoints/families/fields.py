"""Strict reader of a checkpoint's config.json that rejects unknown fields."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, TypeVar

from fillmask_model.encoder.config import Activation

T = TypeVar("T")

ACTIVATIONS: dict[str, Activation] = {
    "gelu": "gelu_erf",
    "gelu_python": "gelu_erf",
    "gelu_new": "gelu_tanh",
    "gelu_fast": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
}
# fields that do not change the predictions of the encoder
_IRRELEVANT = re.compile(
    r"""
    _name_or_path | _attn_implementation.* | attn_implementation | _commit_hash
    | architectures | transformers_version | torch_dtype | dtype | model_max_length
    | .*dropout.* | .*drop_rate | .*_prob | initializer_.* | gradient_checkpointing
    | .*_token_ids? | .*_token_type | language | directionality | name | tokenizer_class | prefix
    | _?num_labels | id2label | label2id | problem_type | finetuning_task | task_specific_params
    | sentence_transformers | sbert_ce_default_activation_function | tie_weights_ | xla_device
    | use_cache | return_dict | output_(attentions|hidden_states|past|scores) | torchscript
    | use_bfloat16 | tf_legacy_loss | return_dict_in_generate | keys_to_ignore_at_inference
    | (max|min)_length | do_sample | early_stopping | num_beams | num_beam_groups | temperature
    | top_[kp] | typical_p | .*_penalty | .*no_repeat_ngram_size | bad_words_ids
    | num_return_sequences | remove_invalid_values | (begin_)?suppress_tokens
    | pooler_.* | summary_.* | classifier_pooling | chunk_size_feed_forward
    | cross_attention_hidden_size
    """,
    re.VERBOSE,
)
# fields with the values that the encoder supports
_REQUIRED: dict[str, tuple[Any, ...]] = {
    "is_decoder": (False,),
    "is_encoder_decoder": (False,),
    "tie_encoder_decoder": (False,),
    "add_cross_attention": (False,),
    "pruned_heads": ({}, None),
}
_COMMON_SIZES = {
    "vocab_size": "vocab_size",
    "d_model": "hidden_size",
    "num_layers": "num_hidden_layers",
    "num_heads": "num_attention_heads",
    "d_ff": "intermediate_size",
    "max_positions": "max_position_embeddings",
}
_REMOTE_CODE = "AutoModel"


class Fields:
    """Reader of the fields of a config.json.

    Each method removes the fields that it reads.

    Args:
        values: the file's object, without `model_type`.

    Raises:
        ValueError: the checkpoint needs custom code, or a field has an unsupported value.
    """

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._left = dict(values)
        for name, allowed in _REQUIRED.items():
            self.expect(name, *allowed)
        remote_code = self._left.pop("auto_map", None) or {}
        if isinstance(remote_code, dict) and any(
            name.startswith(_REMOTE_CODE) for name in remote_code
        ):
            raise ValueError(
                "auto_map names custom code, which fillmask never runs; "
                "use a checkpoint of a supported architecture"
            )

    def required(self, name: str) -> Any:
        """Return the value of a required field.

        Raises:
            ValueError: the field is missing.
        """
        if name not in self._left:
            raise ValueError(f"{name} is missing; add it to config.json")
        return self._left.pop(name)

    def common(self) -> dict[str, Any]:
        """Return the sizes and `tied` by their names in `EncoderConfig`.

        Most families share these fields.

        Raises:
            ValueError: a size is missing.
        """
        sizes = {ours: self.required(theirs) for ours, theirs in _COMMON_SIZES.items()}
        return sizes | {"tied": self.get("tie_word_embeddings", default=True)}

    def get(self, name: str, default: T) -> Any | T:
        """Return the value of an optional field.

        The default replaces a missing field and null.
        """
        value = self._left.pop(name, default)
        return default if value is None else value

    def expect(self, name: str, *allowed: Any) -> None:
        """Check that a field is missing or has one of the allowed values.

        Raises:
            ValueError: the field has another value.
        """
        value = self._left.pop(name, allowed[0])
        # compare types too, because 0 equals False
        if not any(value == one and type(value) is type(one) for one in allowed):
            shown = " or ".join(repr(one) for one in allowed)
            raise ValueError(f"{name} must be {shown} (got {value!r})")

    def activation(self, name: str, default: str = "gelu") -> Activation:
        """Return the activation that a field names.

        Raises:
            ValueError: the activation is not a GELU.
        """
        value = self.get(name, default)
        if not isinstance(value, str) or value not in ACTIVATIONS:
            raise ValueError(f"{name} must be one of {', '.join(ACTIVATIONS)} (got {value!r})")
        return ACTIVATIONS[value]

    def number(self, name: str, default: float) -> float:
        """Return the number in a field as a float.

        Raises:
            ValueError: the value is not a number.
        """
        return to_float(name, self.get(name, default))

    def whole_number(self, name: str, default: int) -> int:
        """Return the whole number in a field.

        Raises:
            ValueError: the value is not a whole number.
        """
        value: object = self.get(name, default)
        if type(value) is not int:
            raise ValueError(f"{name} must be a whole number (got {value!r})")
        return value

    def reject_unknown(self) -> None:
        """Reject unread fields, except fields that do not change the predictions of the encoder.

        Raises:
            ValueError: a field is unknown.
        """
        unknown = sorted(name for name in self._left if not _IRRELEVANT.fullmatch(name))
        if unknown:
            raise ValueError(
                f"the configuration must have only known fields (unknown: {', '.join(unknown)}); "
                "remove each unknown field that does not change the encoder's mathematics"
            )


def to_float(name: str, value: object) -> float:
    """Return a number of a config.json as a float.

    Raises:
        ValueError: the value is not a number, or too large for a float.
    """
    if type(value) not in {int, float}:
        raise ValueError(f"{name} must be a number (got {value!r})")
    try:
        return float(value)  # type: ignore[arg-type] # the type is int or float
    except OverflowError:
        raise ValueError(f"{name} must be below 1.8e308 (got {value!r})") from None
