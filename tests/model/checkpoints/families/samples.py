"""Two small checkpoints of each family, which transformers creates with random weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
import transformers
from torch import Tensor

from tests.model.samples import random_ids, randomise

# sizes without dropout, which transformers skips in evaluation mode
_BERT = {
    "vocab_size": 97,
    "hidden_size": 33,
    "num_hidden_layers": 3,
    "num_attention_heads": 3,
    "intermediate_size": 71,
    "max_position_embeddings": 19,
}
_OTHER = {
    "vocab_size": 203,
    "hidden_size": 40,
    "num_hidden_layers": 2,
    "num_attention_heads": 5,
    "intermediate_size": 50,
    "max_position_embeddings": 23,
    "layer_norm_eps": 1e-5,
}
_DISTIL = {"vocab_size": 97, "max_position_embeddings": 19}
_GATED = {
    "vocab_size": 97,
    "hidden_size": 36,
    "num_hidden_layers": 4,
    "num_attention_heads": 3,
    "intermediate_size": 31,
    "max_position_embeddings": 32,
    "pad_token_id": 0,
}
_MODERN = {
    **_GATED,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "cls_token_id": 1,
    "sep_token_id": 2,
}
_ESM = {
    "vocab_size": 33,
    "hidden_size": 40,
    "num_hidden_layers": 2,
    "num_attention_heads": 5,
    "intermediate_size": 50,
    "max_position_embeddings": 26,
    "pad_token_id": 1,
    "mask_token_id": 32,
}
_YARN = {
    "rope_type": "yarn",
    "rope_theta": 500.0,
    "factor": 4.0,
    "original_max_position_embeddings": 8,
    "beta_fast": 2.0,
    "beta_slow": 1.0,
}
_LLAMA = {
    "rope_type": "llama3",
    "rope_theta": 500.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 16,
}


@dataclass(frozen=True, slots=True)
class Sample:
    """Description of a small checkpoint.

    Attributes:
        family: prefix of the class names in transformers.
        fields: differences from the default configuration.
        own_mask: id of a mask token that changes the embeddings of the other tokens, or None.
    """

    family: str
    fields: dict[str, Any]
    own_mask: int | None = None

    def make(self, seed: int = 3, head: str = "ForMaskedLM", **changes: Any) -> Any:
        """Return a model of transformers with random weights, in evaluation mode.

        Args:
            head: suffix of the class name in transformers, such as "ForMaskedLM".
            changes: fields of the configuration that replace those of the sample.
        """
        config = getattr(transformers, f"{self.family}Config")(**(self.fields | changes))
        model = getattr(transformers, f"{self.family}{head}")(config).eval()
        randomise(model, seed)
        return model


SAMPLES: dict[str, Sample] = {
    "BERT, three heads": Sample("Bert", _BERT),
    "BERT, tanh, three types": Sample(
        "Bert", {**_OTHER, "type_vocab_size": 3, "hidden_act": "gelu_new"}
    ),
    "BERT, not tied": Sample("Bert", {**_BERT, "tie_word_embeddings": False}),
    "DistilBERT, three heads": Sample(
        "DistilBert", {**_DISTIL, "dim": 33, "n_layers": 3, "n_heads": 3, "hidden_dim": 71}
    ),
    "DistilBERT, sinusoids": Sample(
        "DistilBert",
        {
            **_DISTIL,
            "dim": 40,
            "n_layers": 2,
            "n_heads": 5,
            "hidden_dim": 50,
            "sinusoidal_pos_embds": True,
        },
    ),
    "RoBERTa, one type": Sample("Roberta", {**_BERT, "type_vocab_size": 1}),
    "RoBERTa, not tied, tanh": Sample(
        "Roberta",
        {**_OTHER, "tie_word_embeddings": False, "hidden_act": "gelu_new", "pad_token_id": 0},
    ),
    "CamemBERT": Sample("Camembert", {**_BERT, "type_vocab_size": 1}),
    "CamemBERT, other sizes": Sample("Camembert", _OTHER),
    "XLM-RoBERTa": Sample("XLMRoberta", {**_BERT, "type_vocab_size": 1}),
    "XLM-RoBERTa, other sizes": Sample("XLMRoberta", _OTHER),
    "ALBERT, one group": Sample("Albert", {**_BERT, "embedding_size": 12}),
    "ALBERT, two groups": Sample(
        "Albert",
        {**_OTHER, "num_hidden_layers": 5, "num_hidden_groups": 2, "embedding_size": 40},
    ),
    "ELECTRA, narrow embeddings": Sample("Electra", {**_BERT, "embedding_size": 12}),
    "ELECTRA, wide embeddings, not tied": Sample(
        "Electra", {**_OTHER, "embedding_size": 40, "tie_word_embeddings": False}
    ),
    "MPNet": Sample("MPNet", {**_BERT, "max_position_embeddings": 200}),
    "MPNet, other sizes": Sample("MPNet", {**_OTHER, "hidden_act": "gelu_new"}),
    "ESM-2": Sample(
        "Esm",
        {**_ESM, "position_embedding_type": "rotary", "token_dropout": True},
        own_mask=32,
    ),
    "ESM-1b": Sample(
        "Esm",
        {
            **_ESM,
            "num_attention_heads": 4,
            "position_embedding_type": "absolute",
            "emb_layer_norm_before": True,
            "tie_word_embeddings": False,
        },
    ),
    "ModernBERT": Sample("ModernBert", {**_MODERN, "local_attention": 8}),
    "ModernBERT, every bias": Sample(
        "ModernBert",
        {
            **_MODERN,
            "hidden_size": 40,
            "num_attention_heads": 5,
            "global_attn_every_n_layers": 2,
            "local_attention": 5,
            "attention_bias": True,
            "mlp_bias": True,
            "norm_bias": True,
            "classifier_bias": True,
            "decoder_bias": False,
            "classifier_activation": "gelu_new",
            "tie_word_embeddings": False,
        },
    ),
    "ERNIE, first task": Sample(
        "Ernie", {**_BERT, "use_task_id": True, "task_type_vocab_size": 3, "hidden_act": "relu"}
    ),
    "ERNIE, no tasks": Sample("Ernie", _OTHER),
    "data2vec": Sample("Data2VecText", {**_BERT, "type_vocab_size": 1}),
    "data2vec, other sizes": Sample("Data2VecText", _OTHER),
    "Megatron-BERT": Sample("MegatronBert", _BERT),
    "Megatron-BERT, SiLU, not tied": Sample(
        "MegatronBert", {**_OTHER, "hidden_act": "silu", "tie_word_embeddings": False}
    ),
    "RoBERTa, pre-layer-norm": Sample("RobertaPreLayerNorm", {**_BERT, "type_vocab_size": 1}),
    "RoBERTa, pre-layer-norm, other sizes": Sample("RobertaPreLayerNorm", _OTHER),
    "XLM-RoBERTa-XL": Sample("XLMRobertaXL", _BERT),
    "XLM-RoBERTa-XL, other sizes": Sample("XLMRobertaXL", {**_OTHER, "hidden_act": "gelu_new"}),
    "Nomic BERT": Sample("NomicBert", _GATED),
    "Nomic BERT, YaRN": Sample(
        "NomicBert", {**_GATED, "rope_parameters": _YARN, "type_vocab_size": 3}
    ),
    "GTE": Sample("Gte", {**_GATED, "type_vocab_size": 2}),
    "GTE, no types, linear": Sample(
        "Gte",
        {
            **_GATED,
            "hidden_act": "gelu_new",
            "type_vocab_size": 0,
            "rope_parameters": {"rope_type": "linear", "rope_theta": 900.0, "factor": 3.0},
        },
    ),
    "EuroBERT": Sample("EuroBert", _GATED),
    "EuroBERT, shared keys, every bias": Sample(
        "EuroBert",
        {
            **_GATED,
            "num_attention_heads": 6,
            "num_key_value_heads": 2,
            "attention_bias": True,
            "mlp_bias": True,
            "rope_parameters": _LLAMA,
            "tie_word_embeddings": True,
        },
    ),
    "UltraBERT": Sample("Ultrabert", {**_GATED, "sliding_window": 3, "prediction_head_size": 20}),
    "UltraBERT, all layers local": Sample(
        "Ultrabert",
        {
            **_GATED,
            "num_attention_heads": 6,
            "num_key_value_heads": 3,
            "sliding_window": 2,
            "layer_types": ["sliding_attention"] * 4,
            "prediction_head_size": 50,
        },
    ),
    "ESM C": Sample("Esmc", {**_GATED, "vocab_size": 64, "pad_token_id": 1}),
    "ESM C, every bias": Sample(
        "Esmc",
        {**_GATED, "vocab_size": 64, "pad_token_id": 1, "attention_bias": True, "mlp_bias": True},
    ),
}


# families that transformers only reads after a translation, in tests/published
TRANSLATED = {"neobert", "new"}


@dataclass(frozen=True, slots=True)
class Inputs:
    """Padded batch of three texts, with masks also at the ends of texts.

    The tensors have the shape (N, T) for N texts of at most T tokens.
    """

    input_ids: Tensor
    attention_mask: Tensor
    mask_indicator: Tensor

    @classmethod
    def of(cls, model: Any, sample: Sample, tokens: int) -> Inputs:
        """Return inputs whose longest text has the given number of tokens."""
        lengths = torch.tensor([tokens, tokens // 2, 3])
        attention_mask = (torch.arange(tokens) < lengths[:, None]).long()
        # low ids are special in some families, padding among them
        input_ids = 5 + random_ids((3, tokens), model.config.vocab_size - 6)
        indicator = random_ids((3, tokens), 2, 5)
        indicator[:, 0] = 1
        indicator[torch.arange(3), lengths - 1] = 1
        indicator[:, 1] = 0
        indicator = indicator * attention_mask
        if sample.own_mask is not None:
            input_ids = torch.where(indicator > 0, sample.own_mask, input_ids)
        return cls(
            input_ids * attention_mask + (1 - attention_mask) * _padding(model),
            attention_mask,
            indicator,
        )


# families whose positions start behind the id of the padding
_AFTER_PADDING = {
    "roberta",
    "camembert",
    "xlm-roberta",
    "data2vec-text",
    "roberta-prelayernorm",
    "xlm-roberta-xl",
}


def _padding(model: Any) -> int:
    pad = model.config.pad_token_id
    return 1 if pad is None else int(pad)


def reading_tokens(model: Any) -> int:
    """Return the maximum length of a model's input, in tokens."""
    config = model.config
    skipped = {"mpnet": 2}.get(config.model_type, 0)
    if config.model_type in _AFTER_PADDING:
        skipped = _padding(model) + 1
    if config.model_type == "esm" and config.position_embedding_type == "absolute":
        skipped = 2
    return int(config.max_position_embeddings) - skipped
