"""Files of the comparison: models in a cache that git ignores, written by `prepare`."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from benchmarks.comparison.texts import MASK_TOKEN
from service.tokenization.tokenizer import Tokenizer

ROOT = Path(__file__).parents[2]
CACHE = ROOT / "build" / ".comparison-cache"

COMPARISON_SIZES = ("minilm", "bert-base")
# the MiniLM encoder with a vocabulary as large as multilingual models have; for scaling only
LARGE_VOCABULARY_SIZE = "minilm-250k"
LARGE_VOCABULARY = 250_002
PRECISIONS = ("fp32", "int8")


@dataclass(frozen=True, slots=True)
class Workspace:
    """The files of one model size."""

    size: str

    @property
    def peers(self) -> Path:
        """What does not depend on this project's export."""
        return CACHE / self.size / "peers"

    @property
    def ours(self) -> Path:
        """What this project's export makes."""
        return CACHE / self.size / "ours"

    @property
    def checkpoint(self) -> Path:
        """A Hugging Face directory: the weights of every contender."""
        return self.peers / "checkpoint"

    @property
    def reference(self) -> Path:
        """What transformers answers to each text, see `correctness`."""
        return self.peers / "reference.json"

    @property
    def full_logits(self) -> Path:
        """torch.onnx.export's graph: logits at every position."""
        return self.peers / "full-logits.onnx"

    @property
    def full_logits_int8(self) -> Path:
        """The same after NNCF's quantization."""
        return self.peers / "full-logits-int8.xml"

    @property
    def gather(self) -> Path:
        """This project's reference graph: logits at the masks."""
        return self.ours / "gather.onnx"

    @property
    def gather_int8(self) -> Path:
        """The same after NNCF's quantization."""
        return self.ours / "gather-int8.xml"

    def bundle(self, precision: str) -> Path:
        """This project's bundle."""
        return self.ours / precision

    def tokenizer(self) -> Tokenizer:
        """The checkpoint's tokenizer, as this project's service uses it."""
        content = (self.checkpoint / "tokenizer.json").read_bytes()
        special = {
            token["content"]: token["id"]
            for token in json.loads(content)["added_tokens"]
            if token["special"]
        }
        return Tokenizer(content, MASK_TOKEN, special[MASK_TOKEN], list(special.values()))
