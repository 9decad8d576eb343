"""Scores of pairs over HTTP, compared with one pass of transformers per token."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from tests.parity.served import TOLERANCE, Served, serve
from tests.parity.test_pair_fills import KINDS

PAIRS = [
    {"text": "Where is she?", "text_pair": "She is in Rome, and Rome is old!"},
    {"text": "The capital of France is Paris.", "text_pair": "tea"},
]


@pytest.fixture(scope="module", params=KINDS)
def served(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Served]:
    """Service of a random checkpoint of each family that reads pairs."""
    with serve(tmp_path_factory.mktemp("scores"), request.param, "ForMaskedLM") as one:
        yield one


@pytest.mark.parametrize("variant", ["within_word", "original"])
@torch.inference_mode()
def test_scores_of_pairs(served: Served, variant: str) -> None:
    # The variant within_word does not mask an equal word in the other text of the pair.
    answers = served.post("/score", PAIRS, variant=variant)
    for pair, ours in zip(PAIRS, answers, strict=True):
        encoded = served.encode(**pair)
        parts, words = encoded.sequence_ids(0), encoded.word_ids(0)
        offsets = served.tokenizer(pair["text"], pair["text_pair"], return_offsets_mapping=True)[
            "offset_mapping"
        ]
        ids = encoded["input_ids"][0].tolist()
        own = [place for place, part in enumerate(parts) if part is not None]
        assert [token["token"] for token in ours["tokens"]] == [ids[place] for place in own]
        total = 0.0
        for place, token in zip(own, ours["tokens"], strict=True):
            same = [
                other
                for other in own
                if other >= place and (parts[other], words[other]) == (parts[place], words[place])
            ]
            masked = {name: values.clone() for name, values in encoded.items()}
            hidden = same if variant == "within_word" else [place]
            masked["input_ids"][0, hidden] = served.tokenizer.mask_token_id
            logits = served.model(**masked).logits[0, place]
            log_prob = torch.log_softmax(logits, -1)[ids[place]].item()
            assert token["log_prob"] == pytest.approx(log_prob, abs=TOLERANCE)
            total += log_prob
            part = ("text", "text_pair")[parts[place]]
            start, end = offsets[place]
            assert token["part"] == part
            written = pair[part][token["start"] : token["end"]]
            assert written.strip() == pair[part][start:end].strip()
            assert start <= token["start"] <= token["end"] <= end
        assert ours["log_prob"] == pytest.approx(total, abs=TOLERANCE * len(own))


def test_tokens_of_single_texts_have_no_part(served: Served) -> None:
    [alone] = served.post("/score", ["Rome is old!"])
    [as_object] = served.post("/score", [{"text": "Rome is old!"}])
    assert alone == as_object
    assert list(alone["tokens"][0]) == [
        *("token", "token_str", "start", "end", "log_prob", "surprisal")
    ]
