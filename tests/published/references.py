"""Random checkpoints with published configurations, and what transformers computes with them.

transformers can't read every published form without the repository's code. These forms are
translated here, by hand, to one that it reads.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
import transformers
from safetensors.torch import load_file, save_file
from torch import Tensor

from tests.model.samples import randomise
from tests.published import neobert

LogProbs = Callable[[list[int]], Tensor]  # of all tokens of one text, (T, V)
_WEIGHTS = "model.safetensors"
# fields that say where code is and which kernels it uses
_NOT_READ = {"model_type", "auto_map", "_attn_implementation", "attn_implementation"}


def write_random(directory: Path, config: dict[str, Any], model_type: str, seed: int) -> LogProbs:
    """Write a checkpoint with random weights.

    Args:
        config: content of config.json, in a small form.
        model_type: the family, which the configuration may leave to the reader.

    Returns:
        A function that computes log-probabilities, independently of fillmask.
    """
    directory.mkdir(exist_ok=True)
    if model_type == "neobert":
        weights = neobert.random_weights(config, seed)
        tensors = {name: torch.from_numpy(weight).float() for name, weight in weights.items()}
        save_file(tensors, directory / _WEIGHTS)
        log_probs = partial(neobert.log_probs, config, weights)
        compute: LogProbs = lambda ids: torch.from_numpy(log_probs(ids))  # noqa: E731 - one line
    else:
        model = _TRANSLATED.get(model_type, _of_transformers)(directory, config, model_type, seed)
        compute = partial(_log_probs, model)
    (directory / "config.json").write_text(json.dumps(config))
    return compute


@torch.inference_mode()
def _log_probs(model: Any, ids: list[int]) -> Tensor:
    logits = model(input_ids=torch.tensor([ids])).logits[0]
    return torch.log_softmax(logits, -1)


def _of_transformers(directory: Path, config: dict[str, Any], model_type: str, seed: int) -> Any:
    fields = {
        # version 5 refuses whole numbers that earlier versions have written
        name: float(value) if name.endswith("_prob") and type(value) is int else value
        for name, value in config.items()
        if name not in _NOT_READ
    }
    read = transformers.AutoConfig.for_model(model_type, **fields)
    options: Any = {"dtype": torch.float32, "attn_implementation": "eager"}
    make: Any = transformers.AutoModelForMaskedLM
    model = make.from_config(read, **options).eval()
    randomise(model, seed)
    model.save_pretrained(directory)
    return model


def _new(directory: Path, config: dict[str, Any], _: str, seed: int) -> Any:
    scaling = config.get("rope_scaling") or {}
    base = config.get("rope_theta", 10_000.0)
    plain = config | {"rope_scaling": None, "rope_theta": base}
    model = _of_transformers(directory, plain, "gte", seed)
    if scaling:  # Su 2023 (kexue.fm/archives/9706), equation 6
        factor, width = scaling["factor"], model.gte.rotary_emb.inv_freq.shape[0] * 2
        exponents = torch.arange(0, width, 2) / width
        frequencies = (base * factor) ** -exponents / factor ** (2 / width)
        model.gte.rotary_emb.inv_freq.copy_(frequencies)
    _rename(directory, lambda name: name.replace("gte.", "new.", 1))
    return model


def _nomic(directory: Path, config: dict[str, Any], _: str, seed: int) -> Any:
    if "n_embd" not in config:
        return _of_transformers(directory, config, "nomic_bert", seed)
    fields = {
        "vocab_size": config["vocab_size"],
        "hidden_size": config["n_embd"],
        "num_hidden_layers": config["n_layer"],
        "num_attention_heads": config["n_head"],
        "intermediate_size": config["n_inner"],
        "max_position_embeddings": config["n_positions"],
        "layer_norm_eps": config["layer_norm_epsilon"],
        "type_vocab_size": config["type_vocab_size"],
        "rope_theta": config["rotary_emb_base"],
    }
    model = _of_transformers(directory, fields, "nomic_bert", seed)
    # whose code has no biases in the head
    biases = ("cls.predictions.bias", "cls.predictions.transform.dense.bias")
    with torch.no_grad():
        for name in biases:
            model.get_parameter(name).zero_()
    _rename(directory, lambda name: name.replace("nomic_bert.", "bert.", 1), without=biases)
    return model


def _rename(directory: Path, rename: Callable[[str], str], without: tuple[str, ...] = ()) -> None:
    tensors = load_file(directory / _WEIGHTS)
    kept = {rename(name): tensor for name, tensor in tensors.items() if name not in without}
    save_file(kept, directory / _WEIGHTS)


_TRANSLATED = {"new": _new, "nomic_bert": _nomic}
