"""Entities of texts: labels of their tokens, their F1, and `fillmask-train classify-tokens`."""

from __future__ import annotations

import copy
import json
from itertools import starmap
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers

from fillmask.tasks.classify_tokens.spans import labelled_runs
from fillmask_model.checkpoints.checkpoint import load_checkpoint
from fillmask_model.commands import main
from fillmask_model.encoder.classifier import ClassifierConfig
from fillmask_model.fine_tuning.classification import label_loss
from fillmask_model.fine_tuning.entities import encode_entities, entities_of
from fillmask_model.fine_tuning.labels import TOKENS, Columns, read_dataset
from fillmask_model.fine_tuning.metrics import describe_predictions
from fillmask_model.fine_tuning.tokens import TokenizedTexts
from tests.model.fine_tuning.samples import FILLERS, TOKENIZER, WORDS, save_start, tokens_of
from tests.model.fine_tuning.samples import write_rows as write

COLUMNS = Columns(label="entities")
LABELS = ("O", "B-A", "I-A", "B-B", "I-B")
HEAD = ClassifierConfig(labels=LABELS, pooling="tokens", activation=None)
FAMILY = "\U0001f468\u200d\U0001f469\u200d\U0001f467"  # one picture of five code points


def pieces() -> Tokenizer:
    """Return the tokenizer of words with `##dog` and `##s` as sub-words."""
    tokenizer = copy.deepcopy(TOKENIZER)
    vocabulary = tokenizer.get_vocab()
    vocabulary |= {piece: len(vocabulary) + n for n, piece in enumerate(("##dog", "##s"))}
    tokenizer.model = models.WordPiece(vocab=vocabulary, unk_token="[UNK]")  # noqa: S106 - not a password
    return tokenizer


def spaces() -> Tokenizer:
    """Return a tokenizer whose tokens include the white space before them."""
    tokenizer = copy.deepcopy(TOKENIZER)
    tokenizer.model = models.WordLevel(tokenizer.get_vocab(), unk_token="[UNK]")  # noqa: S106 - not a password
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    return tokenizer


def at(start: Any, end: Any, label: Any = "A") -> dict[str, Any]:
    return {"start": start, "end": end, "label": label}


def row(text: str, *entities: dict[str, Any]) -> dict[str, Any]:
    return {"text": text, "entities": entities}


def encoded(path: Path, *rows: dict[str, Any], **options: Any) -> tuple[TokenizedTexts, Any]:
    """Return the tokens of rows of a file, with their labels."""
    data = read_dataset(write(path / "data.jsonl", rows), COLUMNS, TOKENS)
    texts = tokens_of(data, with_spans=True, **options)
    return texts, encode_entities(data, texts, LABELS)


@pytest.mark.parametrize(
    ("text", "entities", "expected"),
    [
        ("the cat", [(4, 7, "A")], "O B-A"),
        ("cat dog and fox", [(4, 7, "B"), (0, 3, "B"), (8, 15, "A")], "B-B B-B B-A I-A"),
        ("cat dogs", [(0, 8, "A")], "B-A I-A I-A"),  # dog, ##s
        ("catdog", [(3, 6, "A")], "O B-A"),
        ("catdog", [(0, 3, "A"), (3, 6, "B")], "B-A B-B"),
        ("cat dogs", [(5, 6, "A")], "O B-A O"),  # a boundary within a token
        ("cat dogs fox", [(2, 8, "A"), (8, 12, "B")], "B-A I-A I-A B-B"),
        ("the c\u00e4t, CAT", [(4, 7, "A"), (9, 12, "B")], "O B-A O B-B"),
        ("the ca\u0308t, cat", [(4, 8, "A"), (10, 13, "B")], "O B-A O B-B"),  # two code points
        ("\U0001f600 cat", [(2, 5, "A")], "O B-A"),
        (f"{FAMILY} cat", [(0, 5, "B"), (6, 9, "A")], "B-B B-A"),
        ("  the  cat ", [(6, 11, "A")], "O B-A"),  # white space around it
        ("red", [], "O"),
    ],
)
def test_the_labels_of_tokens(text: str, entities: Any, expected: str, tmp_path: Path) -> None:
    texts, [labels_T] = encoded(tmp_path, row(text, *starmap(at, entities)), tokenizer=pieces())
    inside = len(texts.ids[0]) - 1
    assert [LABELS[label] for label in labels_T[1:inside]] == expected.split()
    assert set(labels_T[[0, *range(inside, 8)]].tolist()) <= {-100}


def test_white_space_of_a_token_is_in_no_entity(tmp_path: Path) -> None:
    marked = row("the cat sat", at(0, 4), at(8, 11, "B"))
    texts, [labels_T] = encoded(tmp_path, marked, tokenizer=spaces())
    assert texts.spans is not None
    assert texts.spans[0].tolist() == [[-1, -1], [0, 3], [3, 7], [7, 11], [-1, -1]]
    assert labels_T.tolist() == [-100, 1, 0, 3, -100, *[-100] * 3]


@pytest.mark.parametrize(
    ("entities", "message"),
    [
        ("[]", "entities must be a list of objects, in JSONL (got '[]')"),
        ([[0, 3, "A"]], "must contain objects with start, end and label (got [0, 3, 'A'])"),
        ([{"start": 0, "label": "A"}], "must contain objects with start, end and label"),
        ([at(0, 8)], "enclose some of the text's 7 characters, not only white space (got 0 and 8)"),
        ([at(3, 4)], "not only white space (got 3 and 4)"),
        ([at(2, 2)], "(got 2 and 2)"),
        ([at(-3, 2)], "(got -3 and 2)"),
        ([at(0, 2.0)], "start and end must be whole numbers that enclose"),
        ([at(0, 3, " ")], "a text, not blank and not O, which stands for no entity (got ' ')"),
        ([at(0, 3, "O")], "not O, which stands for no entity (got 'O')"),
        ([at(0, 3, 5)], "the label of an entity must be a text"),
        (
            [at(2, 7, "B"), at(0, 3)],
            "not overlap (got A from 0 to 3 and B from 2 to 7); remove one",
        ),
        ([at(4, 5), at(5, 7, "B")], "the entity B from 5 to 7 has no token of its own"),
        (
            [at(0, 3, "C")],
            "the training rows have no entity 'C'; add training rows with this label",
        ),
    ],
)
def test_a_mistake_names_its_row(entities: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"data\.jsonl, row 2: ") as caught:
        encoded(tmp_path, row("cat"), {"text": "the cat", "entities": entities})
    assert message in str(caught.value)


def test_entities_after_the_last_token_of_a_cut_text_are_no_mistake(tmp_path: Path) -> None:
    marked = row("cat " * 20, at(0, 3), at(52, 71, "B"), at(76, 79))
    _, [labels_T] = encoded(tmp_path, marked, truncate=True, note=lambda _: None)
    assert labels_T.tolist() == [-100, 1, *[0] * 12, 3, -100]
    with pytest.raises(ValueError, match="entity B from 5 to 7 has no token"):
        encoded(tmp_path, row("cat " * 20, at(4, 5), at(5, 7, "B")), truncate=True, note=print)


def test_the_f1_by_hand() -> None:
    ignored = -100
    targets = np.array(
        [[ignored, 1, 2, 0, 3, 4, ignored], [ignored, 1, 1, ignored, *[ignored] * 3]]
    )
    # one entity is too short and one too many; special tokens and padding count for nothing
    predicted = np.array([[3, 1, 2, 1, 3, 0, 3], [1, 1, 1, 4, 1, 2, 3]])
    found = describe_predictions(
        HEAD, np.eye(5, dtype=np.float32)[predicted], targets, intervals=True
    )
    assert found == {
        "rows": 2,
        "f1": pytest.approx(6 / 9),
        "precision": pytest.approx(3 / 5),
        "recall": pytest.approx(3 / 4),
        "labels": {
            "A": {"precision": 3 / 4, "recall": 1.0, "f1": pytest.approx(6 / 7), "entities": 3},
            "B": {"precision": 0.0, "recall": 0.0, "f1": 0.0, "entities": 1},
        },
    }


def test_entities_are_those_of_the_service() -> None:
    generator = np.random.default_rng(0)
    for length in [0, 1, *generator.integers(2, 12, 200)]:
        labels = generator.integers(0, 5, length)
        runs = labelled_runs([LABELS[label] for label in labels]) if length else []
        expected = {("AB".index(tag), *span) for tag, *span in runs if tag != "O"}
        assert entities_of(labels) == expected


def test_the_loss_is_the_mean_over_the_tokens_that_are_not_special() -> None:
    generator = np.random.default_rng(0)
    logits = generator.normal(size=(2, 3, 5))
    targets = np.array([[-100, 2, 0, -100], [-100, 4, -100, -100]], np.int32)
    log_probs = logits - np.log(np.exp(logits).sum(axis=2, keepdims=True))
    expected = -(log_probs[0, 1, 2] + log_probs[0, 2, 0] + log_probs[1, 1, 4]) / 3
    loss = label_loss(TOKENS, torch.from_numpy(logits), torch.from_numpy(targets))
    assert float(loss) == pytest.approx(expected)


def animals(count: int) -> list[dict[str, Any]]:
    """Return texts of which neighbouring animals and colours are entities."""
    generator, rows = np.random.default_rng(0), []
    words = [*WORDS["animal"].split(), *WORDS["colour"].split(), *FILLERS]
    for _ in range(count):
        text, entities = "", []
        for word in generator.choice(words, 6):
            start = len(text)
            text += f"{word} "
            labels = [label for label in ("animal", "colour") if word in WORDS[label].split()]
            entities += [at(start, len(text) - 1, label) for label in labels]
        rows.append(row(text, *entities))
    return rows


def test_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.chdir(tmp_path)
    save_start("start")
    rows = [*animals(180), row("cat " * 20, at(76, 79, "animal"))]
    rows[0]["text_pair"] = "dog"
    command = ["classify-tokens", str(write("data.jsonl", rows)), "--device=cpu"]
    options = ["--epochs=3", "--learning-rate=0.02", "--output=run"]
    assert main([*command, *options, "--init=start"]) == 0
    said = capsys.readouterr().out
    assert "rows of data.jsonl truncated to 16 tokens: 1 of" in said
    assert "ignored columns of data.jsonl: text_pair" in said
    metrics = json.loads(Path("run/metrics.json").read_text())
    assert (metrics["problem_type"], metrics["best_by"]) == ("token_classification", "f1")
    assert metrics["validation"]["f1"] > 0.99
    assert set(metrics["validation"]["labels"]) == {"animal", "colour"}
    checkpoint = load_checkpoint(Path("run"))
    assert checkpoint.tasks == ("token-classification",)
    assert checkpoint.model.classifier is not None
    labels = ("O", "B-animal", "I-animal", "B-colour", "I-colour")
    assert checkpoint.model.classifier.config.labels == labels
    ids = torch.tensor([TOKENIZER.encode("the red cat and a dog").ids])
    with torch.inference_mode():
        assert checkpoint.model.classify(ids)[0, 1:-1].argmax(1).tolist() == [0, 3, 1, 0, 0, 1]
    # it can start another run
    assert main([*command, "--epochs=1", "--output=again", "--init=run"]) == 0
    assert main([*command, "--output=other", "--init=run", "--on-long-text=error"]) == 2
    assert "must have at most 16 tokens (got 22" in capsys.readouterr().err
