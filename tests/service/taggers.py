"""Tiny bundles and checkpoints with labels of tokens, whose head knows a few words."""

from pathlib import Path

import numpy as np
import torch

from fillmask_model.checkpoints.checkpoint import save_checkpoint
from fillmask_model.encoder.classifier import ClassifierConfig
from fillmask_model.encoder.encoder import TiedEncoder
from tests.service.classifiers import plain_tokenizer, random_model, write_model
from tests.service.tiny import SPECIAL, VOCABULARY

LABELS = ("O", "B-PER", "I-PER", "B-LOC", "I-LOC")
# all others, such as the unknown words, are outside of entities
TAGS = {
    "she": "B-PER",
    "mailman": "B-PER",
    "paris": "B-LOC",
    "rome": "B-LOC",
    "france": "I-LOC",
    "italy": "I-LOC",
    "walk": "B-PER",
    "##s": "I-LOC",  # in one word with another label, which strategies of aggregation resolve
}
_TEXTS, _WORDS = 80, 10  # of the regression
_LOGIT = 8.0  # of the label of a token


def save_tagger(directory: Path) -> Path:
    """Write a checkpoint with the task token-classification, without masks, and return its path."""
    content = plain_tokenizer(pairs=True).to_str().encode()
    save_checkpoint(directory, _taught_model(), content, fills=False)
    return directory


def write_tagger(path: Path, *, name: str = "tagger", fills: bool = False) -> Path:
    """Write a bundle with the task token-classification and return its path.

    Args:
        fills: True if the bundle also has the task fill-mask.
    """
    write_model(path, _taught_model(), plain_tokenizer(pairs=True), name, fills=fills)
    return path


def _taught_model() -> TiedEncoder:
    """Return a random encoder whose head gives the tokens of TAGS their labels."""
    model = random_model(ClassifierConfig(labels=LABELS, pooling="tokens", activation=None))
    head = model.classifier
    assert head is not None
    with torch.no_grad():  # so that hidden states are mostly those of their own tokens
        for name, parameter in model.named_parameters():
            if "norm.weight" in name:
                parameter.fill_(1)
            elif name.startswith("blocks.") or "position" in name or "type" in name:
                parameter.mul_(0.1)
    output, head.output = head.output, torch.nn.Identity()  # type: ignore[assignment]
    tokenizer = plain_tokenizer(pairs=False)
    words = [word for word in VOCABULARY if word not in SPECIAL and not word.startswith("##")]
    random = np.random.default_rng(1)
    words += ["walks", "walking", *["unknown"] * 4]
    hidden, names = [], []
    for _ in range(_TEXTS):
        encoding = tokenizer.encode(" ".join(random.choice(words, _WORDS)))
        hidden.append(model.classify(torch.tensor([encoding.ids]))[0].detach())
        names += [TAGS.get(token, "O") for token in encoding.tokens]
    hidden_CD = torch.cat(hidden)
    logits_CL = torch.tensor([[_LOGIT * (one == name) for one in LABELS] for name in names])
    mean_D, mean_L = hidden_CD.mean(0), logits_CL.mean(0)
    weight_DL = torch.linalg.lstsq(hidden_CD - mean_D, logits_CL - mean_L).solution
    output.weight.data = weight_DL.T.contiguous()
    output.bias.data = mean_L - mean_D @ weight_DL
    head.output = output
    return model
