"""Fields that the modelling code in transformers reads, against the fields that fillmask reads.

A field that neither reads has no effect in either. A field that only transformers reads must be one
of those below, each with the reason why it does not change a prediction.
"""

from __future__ import annotations

import ast
import importlib.util
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import transformers

from fillmask_model.checkpoints.mapping.fields import Fields
from fillmask_model.checkpoints.registry import FAMILIES
from tests.model.checkpoints.families.samples import SAMPLES, TRANSLATED

# fields without effect on a prediction, by reason
_INERT = {
    "dropout, which only training has": {
        "attention_dropout",
        "attention_probs_dropout_prob",
        "classifier_dropout",
        "classifier_dropout_prob",
        "dropout",
        "embedding_dropout",
        "hidden_dropout_prob",
        "mlp_dropout",
        "qa_dropout",
        "seq_classif_dropout",
        "summary_first_dropout",
        "summary_last_dropout",
    },
    "initial weights": {"initializer_range", "initializer_cutoff_factor"},
    "the way of computation": {
        "_attn_implementation",
        "chunk_size_feed_forward",
        "deterministic_flash_attn",
        "output_attentions",
        "output_hidden_states",
        "return_dict",
        "sparse_pred_ignore_index",
        "sparse_prediction",
        "use_cache",
    },
    "an id that only marks padding": {"pad_token_id"},
    "heads for other tasks": {
        "summary_activation",
        "summary_proj_to_labels",
        "summary_type",
        "summary_use_proj",
    },
    "the size of a table that the weights state": {"task_type_vocab_size"},
    "labels, which id2label states": {"num_labels"},
    "decoders, which is_decoder excludes": {"is_encoder_decoder"},
    "a table that the weights contain": {"sinusoidal_pos_embds"},
}
_ALIASES = {
    # names in transformers of fields in published files
    "hidden_size": {"dim"},
    "sliding_window": {"local_attention"},
    "rope_parameters": {"rope_parameters", "rope_theta"},
    "layer_types": {"layer_types", "global_attn_every_n_layers"},
}


def _modelling_file(model_type: str) -> Path:
    package = {"data2vec-text": "data2vec"}.get(model_type, model_type.replace("-", "_"))
    spec = importlib.util.find_spec("transformers")
    assert spec is not None
    assert spec.submodule_search_locations is not None
    folder = Path(spec.submodule_search_locations[0]) / "models" / package
    return folder / f"modeling_{model_type.replace('-', '_')}.py"


def _fields_of_code(path: Path) -> Iterator[str]:
    """Yield the attributes of objects that are called `config`."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Attribute):
            owner = node.value
            name = getattr(owner, "attr", getattr(owner, "id", None))
            if name == "config":
                yield node.attr
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "") == "getattr":
            owner, field = node.args[0], node.args[1]
            if getattr(owner, "attr", getattr(owner, "id", None)) == "config":
                assert isinstance(field, ast.Constant)
                yield str(field.value)


class _Recording(dict[str, Any]):
    """Object of a config.json that records which fields are read."""

    def __init__(self, values: dict[str, Any]) -> None:
        super().__init__(values)
        self.read: set[str] = set()

    def get(self, key: str, default: Any = None) -> Any:
        self.read.add(key)
        return super().get(key, default)


def _fields_of_ours(model_type: str) -> set[str]:
    family = FAMILIES[model_type]
    read = {"problem_type", "classifier_pooling"}  # of the classification head
    for sample in SAMPLES.values():
        make: Any = getattr(transformers, f"{sample.family}Config")
        if make.model_type == model_type:
            values = _Recording(make(**sample.fields).to_dict())
            family.read(Fields(values))
            read |= values.read
    return read


@pytest.mark.parametrize("model_type", sorted(set(FAMILIES) - TRANSLATED))
def test_every_field_that_the_modelling_code_reads_is_read_or_inert(model_type: str) -> None:
    ours = _fields_of_ours(model_type)
    theirs = {name for name in _fields_of_code(_modelling_file(model_type)) if name.islower()}
    inert = set().union(*_INERT.values())
    methods = {name for name in theirs if hasattr(transformers.PreTrainedConfig, name)}
    left = {
        name
        for name in theirs - inert - methods
        if name not in ours and not _ALIASES.get(name, set()) & ours
    }
    assert not left
