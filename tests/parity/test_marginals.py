"""Masked marginals over HTTP and in Python, compared with one pass of transformers per position."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from fillmask import FillMask, InvalidRequestError
from tests.parity.served import TOLERANCE, Served, serve

AMINO_ACIDS = list("ACDEFGHIKLMNPQRSTVWY")
PROTEIN = "MKTAYIAKQRQISFVKSHFSRQ"


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("marginals")


@pytest.fixture(scope="module")
def served(scratch: Path) -> Iterator[Served]:
    """Service of a random ESM-2, whose embeddings depend on the number of masks."""
    with serve(scratch, "ESM-2", "ForMaskedLM") as one:
        yield one


@torch.inference_mode()
def expected(served: Served, text: str) -> NDArray[np.float32]:
    """Return the log-probabilities (positions, amino acids) in place of each residue."""
    ids = served.tokenizer(text, return_tensors="pt")["input_ids"]
    columns = served.tokenizer.convert_tokens_to_ids(AMINO_ACIDS)
    rows = []
    for place in range(1, ids.shape[1] - 1):
        masked = ids.clone()
        masked[0, place] = served.tokenizer.mask_token_id
        logits = served.model(input_ids=masked).logits[0, place]
        rows.append(torch.log_softmax(logits, -1)[columns].numpy())
    return np.stack(rows)


def test_every_position_gets_every_target(served: Served) -> None:
    score = served.post("/score", PROTEIN, targets=AMINO_ACIDS)
    rows = np.array([token["target_log_probs"] for token in score["tokens"]])
    assert rows.shape == (len(PROTEIN), len(AMINO_ACIDS))
    np.testing.assert_allclose(rows, expected(served, PROTEIN), atol=TOLERANCE)
    for token, row, residue in zip(score["tokens"], rows, PROTEIN, strict=True):
        assert token["log_prob"] == pytest.approx(row[AMINO_ACIDS.index(residue)], abs=1e-6)
    # a part has the rows of the whole text, and several texts have their own
    [part, whole] = served.post("/score", [PROTEIN, PROTEIN[::-1]], targets=["A", "W"])
    np.testing.assert_allclose(
        [token["target_log_probs"] for token in part["tokens"]], rows[:, [0, 18]], atol=1e-5
    )
    assert len(whole["tokens"]) == len(PROTEIN)
    span = served.post("/score", PROTEIN, targets=["A", "W"], span=[3, 7])
    np.testing.assert_allclose(
        [token["target_log_probs"] for token in span["tokens"]], rows[3:7, [0, 18]], atol=1e-5
    )


def test_python_returns_a_table(served: Served, scratch: Path) -> None:
    with FillMask(scratch / "bundle") as model:
        table = model.marginals(PROTEIN, AMINO_ACIDS)
        assert table.dtype == np.float32
        np.testing.assert_allclose(table, expected(served, PROTEIN), atol=TOLERANCE)
        first, second = model.marginals([PROTEIN, "MKT"], AMINO_ACIDS)
        np.testing.assert_allclose(first, table, atol=1e-5)
        np.testing.assert_allclose(second, expected(served, "MKT"), atol=TOLERANCE)
        with pytest.raises(InvalidRequestError, match=r'"AC" has 2 tokens; a score needs targets'):
            model.marginals(PROTEIN, ["AC"])


@pytest.mark.parametrize(
    ("targets", "message"),
    [
        (["A", "A"], 'The target "A" is a duplicate; list it once.'),
        (["AC"], 'The target "AC" has 2 tokens; a score needs targets of one token.'),
        (
            ["<mask>"],
            'The target "<mask>" has a special token of the model; write only ordinary text.',
        ),
        ([], "targets must be a list of 1 to 10000 texts (got a list of 0)."),
        ("A", 'targets must be a list of 1 to 10000 texts (got "A").'),
    ],
)
def test_invalid_targets(served: Served, targets: object, message: str) -> None:
    body = {"inputs": PROTEIN, "parameters": {"targets": targets}}
    answer = served.client.post("/score", json=body)
    assert (answer.status_code, answer.json()) == (422, {"error": message})
