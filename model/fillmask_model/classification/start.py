"""Starting points of training, from a checkpoint or with random weights."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import torch
from tokenizers import Tokenizer
from torch import Tensor

from fillmask_model.encoder.classifier import ClassifierConfig
from fillmask_model.encoder.config import EncoderConfig, new_encoder_config
from fillmask_model.encoder.encoder import TiedEncoder
from fillmask_model.fine_tuning.start import load_start
from fillmask_model.fine_tuning.tables import Dataset
from fillmask_model.tokenizers.special_tokens import read_tokenizer
from fillmask_model.tokenizers.word_pieces import DEFAULT_VOCAB_SIZE, train_word_pieces

DEFAULT_MAX_POSITIONS = 512
_HEAD = "classifier."


@dataclass(frozen=True, slots=True, eq=False)
class Start:
    """Encoder and tokenizer at the start of training.

    Attributes:
        weights: weights of the encoder by name. None for random weights.
    """

    config: EncoderConfig
    weights: dict[str, Tensor] | None
    tokenizer: Tokenizer

    @classmethod
    def from_checkpoint(cls, directory: Path) -> Start:
        """Return the encoder and the tokenizer of a checkpoint without its classification head.

        Raises:
            CheckpointError: the checkpoint is invalid, or its tokenizer is missing or too large.
        """
        checkpoint, tokenizer = load_start(directory)
        model = checkpoint.model
        weights = {n: t for n, t in model.state_dict().items() if not n.startswith(_HEAD)}
        return cls(model.config, weights, tokenizer)

    @classmethod
    def from_scratch(
        cls, dataset: Dataset, config_path: Path | None, tokenizer_path: Path | None
    ) -> Start:
        """Return an encoder with random weights and its tokenizer.

        Args:
            dataset: training texts, from which a new tokenizer learns its vocabulary.
            config_path: JSON file with the fields of `EncoderConfig` except `vocab_size`. None for
                a small encoder with BERT's architecture, 4 layers and width 256.
            tokenizer_path: a tokenizer.json. None for a new WordPiece tokenizer.

        Raises:
            ValueError: a file is invalid, or the file at config_path is missing.
            FileNotFoundError: the file at tokenizer_path is missing.
        """
        if tokenizer_path:
            tokenizer = read_tokenizer(tokenizer_path.read_bytes())
        else:
            texts = (t for e in dataset.examples for t in (e.text, e.text_pair) if t is not None)
            tokenizer = train_word_pieces(texts, DEFAULT_VOCAB_SIZE)
        size = tokenizer.get_vocab_size()
        return cls(new_encoder_config(config_path, size, DEFAULT_MAX_POSITIONS), None, tokenizer)

    def without_weights(self) -> Start:
        """Return the same sizes and tokenizer with random weights."""
        return replace(self, weights=None)

    def build(self, classifier: ClassifierConfig, seed: int) -> TiedEncoder:
        """Build the encoder with a new classification head.

        Args:
            seed: seed of all random weights.
        """
        torch.manual_seed(seed)
        model = TiedEncoder(self.config, classifier)
        if self.weights is not None:
            model.load_state_dict(self.weights, strict=False)
        return model
