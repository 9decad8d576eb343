"""Arguments of `fillmask-export`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import get_args

from fillmask.bundles.description import SpecialTokens

SPARSE = "sparse"


def export_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="fillmask-export",
        description="Conversion of a checkpoint, in a directory or on a hub, to a verified bundle "
        "or a graph.",
    )
    parser.add_argument(
        "checkpoint",
        help="directory of the checkpoint, or id of a repository on the hub, such as "
        "google-bert/bert-base-uncased; docs/models.md lists the families",
    )
    parser.add_argument(
        "--revision", help="branch, tag or commit of the repository (default: main)"
    )
    parser.add_argument(
        "--allow-pickle",
        action="store_true",
        help="download pytorch_model.bin from a repository without safetensors files",
    )
    parser.add_argument(
        "--output", type=Path, metavar="BUNDLE", help="directory of the bundle to write"
    )
    parser.add_argument(
        "--bundles",
        type=Path,
        metavar="DIR",
        help="directory of bundles; the new bundle gets the last part of the id or directory as "
        "its name",
    )
    parser.add_argument(
        "--cache",
        action="store_true",
        help="write the bundle to the cache of fillmask-serve --checkpoint, unless it is there",
    )
    parser.add_argument(
        "--overwrite",
        action="store_true",
        help="replace an existing bundle after verification, or an existing reference graph",
    )
    parser.add_argument("--reference", type=Path, help="file of the reference graph to write")
    parser.add_argument(
        "--fuse",
        action="store_true",
        help="add the graph for fillmask-native to a bundle in int8, whose directory takes the "
        "place of the checkpoint. An export adds it by itself, where fillmask-native is installed",
    )
    parser.add_argument(
        "--precision",
        choices=("fp32", "int8"),
        default="fp32",
        help="precision of weights and arithmetic (default: %(default)s)",
    )
    parser.add_argument(
        "--rounding",
        choices=("gptq", "nearest"),
        default="gptq",
        help="method that rounds weights to int8: gptq compensates for rounding errors, nearest is "
        "faster and less accurate (default: %(default)s)",
    )
    parser.add_argument(
        "--task",
        choices=("fill-mask", SPARSE),
        help="task of a masked-language-model head: filling masks, or sparse vectors for search "
        "(default: sparse for a checkpoint with SPLADE's pooling)",
    )
    parser.add_argument(
        "--special-tokens",
        choices=get_args(SpecialTokens),
        help="how the service reads texts with special tokens other than the mask, such as [SEP] "
        "or [E1]: as characters, as these tokens, or not at all (default: literal; refuse for a "
        "tokenizer with special tokens that only texts contain)",
    )
    parser.add_argument("--name", help="name of the model (default: name of its directory)")
    parser.add_argument(
        "--license", default="unknown", help="licence of the weights (default: %(default)s)"
    )
    parser.add_argument(
        "--description",
        help="one sentence about the model (default: id and commit of a downloaded checkpoint)",
    )
    parser.add_argument(
        "--max-tokens",
        type=int,
        help="maximum length of an input in tokens (default: what the tokenizer's files say, or "
        "all positions of the model)",
    )
    parser.add_argument(
        "--texts",
        type=Path,
        help="file of sentences for verification, one per line (default: 130 English texts or, "
        "for a tokenizer that cannot read them, proteins, DNA, reactions or another language)",
    )
    parser.add_argument(
        "--calibrate",
        type=Path,
        help="file of sentences for int8 calibration, one per line (default: others of the texts "
        "for verification by default). "
        "The rounding nearest reads every other sentence. The file has no effect on checkpoints "
        "trained with --round-weights.",
    )
    return parser
