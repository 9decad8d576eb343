"""How many best tokens int8 changes in models with trained weights, for README.md.

    .venv-comparison/bin/python -m benchmarks.quality.fidelity [built-in] [AntiBERTy]

The models are the built-in one, with the texts of the comparison, and AntiBERTy (build/trained,
from `make test-slow`), with the antibodies of its package. Every contender gets the same fp32
weights and the same calibration texts, and the share counts the masks at which it has
transformers' best token.
The fp32 weights of the built-in model are those of its bundle (`fillmask_export.restore`).

Shapes: M masks, V vocabulary.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tokenizers import Tokenizer as FastTokenizer
from transformers import BertConfig, BertForMaskedLM

from benchmarks.comparison.contenders.ctranslate2 import CTranslate2Engine, convert
from benchmarks.comparison.contenders.openvino import HINTS, OpenVinoEngine
from benchmarks.comparison.prepare import logits_at_masks, quantize
from benchmarks.comparison.texts import FILE, masked_texts
from benchmarks.generated_block import table
from benchmarks.tasks.checkpoints import OURS, export
from fillmask.arrays import FloatArray
from fillmask.bundles.bundle import Bundle, default_bundle_path, read_bundle
from fillmask.engine.batch_arrays import Batch
from fillmask.engine.passes import ModelPass, no_targets
from fillmask.engine.runtime import Runtime
from fillmask.models.graph_choice import choose_graph
from fillmask.tokenization.encoded_text import EncodedText
from fillmask.tokenization.tokenizer import Tokenizer
from fillmask_export.restore import restore
from fillmask_model.checkpoints.families import bert
from tests.parity.trained_checkpoints import TRAINED

EVERY = 7  # one of seven residues is a mask
CALIBRATION = 100


def main() -> None:
    """Print the shares."""
    shares: dict[str, list[str]] = {}
    models = {"built-in": built_in, "AntiBERTy": antiberty}
    models = {name: models[name] for name in sys.argv[1:] or models}
    for prepare in models.values():
        with tempfile.TemporaryDirectory() as scratch:
            texts, calibration = prepare(Path(scratch))
            for contender, share in compare(Path(scratch), texts, calibration):
                shares.setdefault(contender, []).append(f"{100 * share:.1f} %")
                print(contender, shares[contender], file=sys.stderr, flush=True)
    print(
        table(
            ["same best token as in fp32", *models], [[name, *own] for name, own in shares.items()]
        )
    )


def built_in(directory: Path) -> tuple[list[str], list[str]]:
    """Write the checkpoint of the built-in model and return texts with masks, and others."""
    bundle = read_bundle(default_bundle_path())
    encoder = restore(bundle)
    config = encoder.config
    make_config: Any = BertConfig
    model = BertForMaskedLM(
        make_config(
            vocab_size=config.vocab_size,
            hidden_size=config.d_model,
            num_hidden_layers=config.num_layers,
            num_attention_heads=config.num_heads,
            intermediate_size=config.d_ff,
            max_position_embeddings=config.max_positions,
        )
    )
    names = {ours: f"bert.{theirs}" for theirs, ours in (bert.EMBEDDINGS | bert.BLOCKS).items()}
    names |= {ours: theirs for theirs, ours in bert.HEAD.items()}
    weights = model.state_dict()
    weights["bert.embeddings.token_type_embeddings.weight"].zero_()
    for name, tensor in encoder.state_dict().items():
        if name != "head_bias":
            layer = next(filter(str.isdigit, name.split(".")), "")
            module, _, kind = name.replace(f".{layer}.", ".{}.").rpartition(".")
            weights[f"{names[module].format(layer)}.{kind}"].copy_(tensor)
    weights["cls.predictions.bias"].copy_(encoder.head_bias)
    model.save_pretrained(directory / "checkpoint")
    tokenizer = bundle.tokenizer_path.read_bytes()
    (directory / "checkpoint" / "tokenizer.json").write_bytes(tokenizer)
    (directory / "checkpoint" / "tokenizer_config.json").write_text('{"mask_token": "[MASK]"}')
    texts = masked_texts()
    (directory / "plain.txt").write_text(FILE.read_text(encoding="utf-8"))
    return texts, texts[:CALIBRATION]


def antiberty(directory: Path) -> tuple[list[str], list[str]]:
    """Write AntiBERTy's checkpoint and return texts with masks, and others."""
    package = TRAINED["antiberty"]
    package.write_checkpoint(directory / "checkpoint")
    found, others = package.texts()
    (directory / "plain.txt").write_text("\n".join(others))
    return _masked(found), _masked(others)


def _masked(texts: Sequence[str]) -> list[str]:
    """Return each text EVERY times, so that each of its residues is a mask once."""
    masked = []
    for text in texts:
        for first in range(EVERY):
            residues = text.split()
            residues[first::EVERY] = ["[MASK]"] * len(residues[first::EVERY])
            masked.append(" ".join(residues))
    return masked


@torch.inference_mode()
def compare(
    directory: Path, masked: Sequence[str], calibration: Sequence[str]
) -> list[tuple[str, float]]:
    """Return the share of each contender."""
    checkpoint = directory / "checkpoint"
    texts_file = str(directory / "plain.txt")
    for name in OURS:
        export(checkpoint, name, "--calibrate", texts_file, "--texts", texts_file)
    gather = directory / "gather.onnx"
    command = [sys.executable, "-m", "fillmask_export", str(checkpoint)]
    subprocess.run([*command, "--reference", str(gather)], check=True)
    bundles = {name: read_bundle(directory / name) for name in ("fp32", "int8")}
    tokenizer = Tokenizer.from_bundle(bundles["fp32"])
    texts = [tokenizer.encode(text) for text in masked]
    model: Any = BertForMaskedLM.from_pretrained(checkpoint, dtype=torch.float32)
    expected = best(tokenizer, texts, lambda some: logits_at_masks(model, some[0]).numpy())
    quantize(
        gather, directory / "gather-int8.xml", [tokenizer.encode(text) for text in calibration]
    )
    vocabulary = FastTokenizer.from_file(str(bundles["fp32"].tokenizer_path)).get_vocab()
    tokens = sorted(vocabulary, key=vocabulary.__getitem__)
    arrays = {name: tensor.numpy() for name, tensor in model.state_dict().items()}
    convert(arrays, model.config, tokens, directory / "ctranslate2")
    found = {
        "fillmask fp32": ours(bundles["fp32"], "off", tokenizer, texts),
        "fillmask int8": ours(bundles["int8"], "off", tokenizer, texts),
    }
    if choose_graph(bundles["int8"], "auto").kind != "stock":  # this machine has the operators
        found["fillmask int8, fused"] = ours(bundles["int8"], "auto", tokenizer, texts)
    for hint in HINTS["int8"]:
        engine = OpenVinoEngine(directory / "gather-int8.xml", hint, 1, 1)
        found[f"OpenVINO int8 (NNCF), {hint}"] = best(tokenizer, texts, engine.logits)
    for head in ("fp32", "int8"):
        peer = CTranslate2Engine(directory / "ctranslate2", "int8", head, 1, 1)
        found[f"CTranslate2 int8, head in {head}"] = best(tokenizer, texts, peer.logits)
    return [(name, float((ids == expected).mean())) for name, ids in found.items()]


def best(
    tokenizer: Tokenizer,
    texts: Sequence[EncodedText],
    logits: Callable[[Sequence[EncodedText]], FloatArray],
) -> np.ndarray[Any, Any]:
    """Return the best ordinary token (M) of each mask."""
    special = list(tokenizer.special_token_ids)
    rows = []
    for text in texts:
        logits_MV = np.array(logits([text]))
        logits_MV[:, special] = -np.inf
        rows.append(logits_MV.argmax(1))
    return np.concatenate(rows)


def ours(
    bundle: Bundle, native: Any, tokenizer: Tokenizer, texts: Sequence[EncodedText]
) -> np.ndarray[Any, Any]:
    """Return the best ordinary token (M) of each mask of one of our graphs."""
    choice = choose_graph(bundle, native)
    runtime = Runtime(choice.path, operators=choice.operators, packed=choice.packed)
    special = set(tokenizer.special_token_ids)
    found = []
    for text in texts:
        targets = no_targets(len(text.mask_positions))
        one = ModelPass(text.input_ids, text.mask_positions, 1 + len(special), targets)
        rows = runtime.run(Batch.pack([one])).top_ids.tolist()
        found += [next(token for token in row if token not in special) for row in rows]
    return np.array(found)


if __name__ == "__main__":
    main()
