"""The fields of a checkpoint's config.json, taken one by one until nothing unknown is left."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, TypeVar

from model.encoder.config import Activation

T = TypeVar("T")

ACTIVATIONS: dict[str, Activation] = {
    "gelu": "gelu_erf",
    "gelu_python": "gelu_erf",
    "gelu_new": "gelu_tanh",
    "gelu_fast": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
}
# what transformers writes into every file and what has no part in a masked language model's answers
_HARMLESS = re.compile(
    r"""
    _name_or_path | _attn_implementation.* | attn_implementation | _commit_hash
    | architectures | transformers_version | torch_dtype | dtype | model_max_length
    | .*dropout.* | .*drop_rate | .*_prob | initializer_.* | gradient_checkpointing
    | .*_token_id | .*_token_type | language | directionality | name | tokenizer_class | prefix
    | num_labels | id2label | label2id | problem_type | finetuning_task | task_specific_params
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
# by field, the only values under which the encoder computes what the file describes
_REQUIRED: dict[str, tuple[Any, ...]] = {
    "is_decoder": (False,),
    "is_encoder_decoder": (False,),
    "tie_encoder_decoder": (False,),
    "add_cross_attention": (False,),
    "pruned_heads": ({}, None),
}
_USUAL_SIZES = {
    "vocab_size": "vocab_size",
    "d_model": "hidden_size",
    "num_layers": "num_hidden_layers",
    "num_heads": "num_attention_heads",
    "d_ff": "intermediate_size",
    "max_positions": "max_position_embeddings",
}
_OWN_CODE = "AutoModel"


class Fields:
    """A config.json's fields.

    Args:
        values: the file's object, without `model_type`.
    """

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._left = dict(values)
        for name, allowed in _REQUIRED.items():
            self.require(name, *allowed)
        own_code = self._left.pop("auto_map", None) or {}
        if isinstance(own_code, dict) and any(name.startswith(_OWN_CODE) for name in own_code):
            raise ValueError("it names code of its own for the model (auto_map), which is not run")

    def take(self, name: str) -> Any:
        """The value of a field.

        Raises:
            ValueError: it is missing.
        """
        if name not in self._left:
            raise ValueError(f"it lacks the field {name}")
        return self._left.pop(name)

    def usual(self) -> dict[str, Any]:
        """What most families call alike, by the names of EncoderConfig: sizes, and the tie.

        Raises:
            ValueError: a size is missing.
        """
        sizes = {ours: self.take(theirs) for ours, theirs in _USUAL_SIZES.items()}
        return sizes | {"tied": self.get("tie_word_embeddings", default=True)}

    def get(self, name: str, default: T) -> Any | T:
        """The value of a field that may be missing or null."""
        value = self._left.pop(name, default)
        return default if value is None else value

    def require(self, name: str, *allowed: Any) -> None:
        """See that a field, where it is there, has one of the values.

        Raises:
            ValueError: it has another.
        """
        value = self._left.pop(name, allowed[0])
        # 0 is not False
        if not any(value == one and type(value) is type(one) for one in allowed):
            shown = " or ".join(repr(one) for one in allowed)
            raise ValueError(f"{name} = {value!r} is not supported, only {shown}")

    def activation(self, name: str, default: str = "gelu") -> Activation:
        """A field that names an activation.

        Raises:
            ValueError: it is not a GELU.
        """
        value = self.get(name, default)
        if not isinstance(value, str) or value not in ACTIVATIONS:
            raise ValueError(f"{name} = {value!r} is not supported, only {', '.join(ACTIVATIONS)}")
        return ACTIVATIONS[value]

    def number(self, name: str, default: float) -> float:
        """A field that holds a number, whole or not, as a float.

        Raises:
            ValueError: it holds something else.
        """
        value = self.get(name, default)
        if type(value) not in {int, float}:
            raise ValueError(f"{name} must be a number, not {value!r}")
        return float(value)

    def end(self) -> None:
        """Refuse what was not taken.

        Raises:
            ValueError: a field is unknown, and might change the maths.
        """
        unknown = sorted(name for name in self._left if not _HARMLESS.fullmatch(name))
        if unknown:
            raise ValueError(
                f"it has fields this family does not know: {', '.join(unknown)}; "
                "remove them if they have no part in the encoder's maths"
            )
