"""Model files of the comparison, which `prepare` writes to a cache that git ignores."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from benchmarks.comparison.texts import MASK_TOKEN
from fillmask.tokenization.tokenizer import Tokenizer

ROOT = Path(__file__).parents[2]
CACHE = ROOT / "build" / ".comparison-cache"

SIZES = ("minilm", "bert-base")
PRECISIONS = ("fp32", "int8")


@dataclass(frozen=True, slots=True)
class Workspace:
    """Files of one model size."""

    size: str

    @property
    def peers(self) -> Path:
        """Directory of files that do not depend on this project's export."""
        return CACHE / self.size / "peers"

    @property
    def ours(self) -> Path:
        """Directory of files that this project's export creates."""
        return CACHE / self.size / "ours"

    @property
    def checkpoint(self) -> Path:
        """Directory of the Hugging Face checkpoint with the weights of all contenders."""
        return self.peers / "checkpoint"

    @property
    def reference(self) -> Path:
        """File with transformers' best tokens at each mask of each text (`correctness`)."""
        return self.peers / "reference.json"

    @property
    def full_logits(self) -> Path:
        """File with the graph of torch.onnx.export, with logits at every position."""
        return self.peers / "full-logits.onnx"

    @property
    def full_logits_int8(self) -> Path:
        """File with the graph of `full_logits` after NNCF's quantization."""
        return self.peers / "full-logits-int8.xml"

    @property
    def ctranslate2(self) -> Path:
        """Directory of CTranslate2's encoder and its heads."""
        return self.peers / "ctranslate2"

    @property
    def gather(self) -> Path:
        """File with the reference graph of this project, with logits at the masks."""
        return self.ours / "gather.onnx"

    @property
    def gather_int8(self) -> Path:
        """File with the graph of `gather` after NNCF's quantization."""
        return self.ours / "gather-int8.xml"

    def bundle(self, precision: str) -> Path:
        """Return the directory of the bundle in a precision."""
        return self.ours / precision

    def tokenizer(self) -> Tokenizer:
        """Load the checkpoint's tokenizer with this project's tokenizer class."""
        content = (self.checkpoint / "tokenizer.json").read_bytes()
        special = {
            token["content"]: token["id"]
            for token in json.loads(content)["added_tokens"]
            if token["special"]
        }
        return Tokenizer(content, MASK_TOKEN, special[MASK_TOKEN], list(special.values()))
