"""Every task over HTTP, compared with transformers on the same weights.

A row is a checkpoint and what it can do. The fills of transformers' pipeline include special
tokens, and its sequences lose capital letters, accents and white space (docs/tokenizers.md), so
the comparison leaves both out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
import transformers

from fillmask import FillMask, InvalidRequestError
from fillmask_model.checkpoints.registry import FAMILIES
from tests.model.tokenizers.tokenizer_directories import KINDS
from tests.parity.served import CLASSES, TEXTS, TOLERANCE, Served, serve

TOP_K = 10
LABELS: dict[str, Any] = {"id2label": dict(enumerate(["sport", "news", "science", "art"]))}
SEQUENCE = "ForSequenceClassification"
# kinds of tokenizers and families that fill masks; the first six also in pairs
PAIRED = ("BERT", "RoBERTa", "ALBERT", "ELECTRA", "MPNet", "XLM-RoBERTa")
FILLING = (*PAIRED, "DistilBERT", "DNABERT", "ModernBERT", "CamemBERT", "ESM-2")
# name of a checkpoint with labels -> (kind, changed fields)
LABELLED: dict[str, tuple[str, dict[str, Any]]] = {
    **{kind: (kind, LABELS) for kind in FILLING if kind not in {"DNABERT", "ESM-2"}},
    "ModernBERT, mean": ("ModernBERT", LABELS | {"classifier_pooling": "mean"}),
    "several labels": ("BERT", LABELS | {"problem_type": "multi_label_classification"}),
    "one label": ("RoBERTa", {"id2label": {0: "spam"}}),
    "regression": ("ALBERT", {"num_labels": 1, "problem_type": "regression"}),
}
RERANKERS = ("BERT", "ModernBERT", "XLM-RoBERTa")
# words in place of the mask
FILLERS = {"ESM-2": "LA", "DNABERT": "ACG"}
# first and second text, in which {} is the mask
PAIRS = (
    ("The capital of {} is Rome.", "Rome is old!"),
    ("Where is she?", "She is in {}, and Rome is old!"),
    ("{} is the capital, and {} is old!", "The capital is {}"),
    ("The capital is {}", "{} is old!"),
)
PLAIN_PAIRS = (
    {"text": "Where is she?", "text_pair": "She is in Rome, and Rome is old!"},
    {"text": "The capital of France is Paris.", "text_pair": "tea"},
)
LONG = " ".join(["She is in Rome, and Rome is old!"] * 40)
AMINO_ACIDS, PROTEIN = list("ACDEFGHIKLMNPQRSTVWY"), "MKTAYIAKQRQISFVKSHFSRQ"
ServedBy = Callable[..., Served]


@pytest.fixture(scope="module")
def served_by(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedBy]:
    """Function that serves a checkpoint, once for all tests."""
    with ExitStack() as stack:

        @cache
        def start(name: str, task: str = "fills") -> Served:
            head, (kind, fields) = {
                "fills": ("ForMaskedLM", (name, {})),
                "labels": (SEQUENCE, LABELLED.get(name, (name, {}))),
                "one logit": (SEQUENCE, (name, {"num_labels": 1})),
            }[task]
            scratch = tmp_path_factory.mktemp("served")
            return stack.enter_context(serve(scratch, kind, head, **fields))

        yield start


def test_every_class_of_tokenizers_has_a_row() -> None:
    # tests/published compares the other families, which have tokenizers of these classes.
    assert {KINDS[kind].model_type for kind in FILLING} == set(CLASSES) <= set(FAMILIES)


def letters(text: str) -> str:
    """Return the text in lower case and without white space."""
    return "".join(text.lower().split())


def by_token(fills: Sequence[dict[str, Any]], field: str) -> dict[int, Any]:
    return {fill["token"]: fill[field] for fill in fills}


@pytest.mark.parametrize("kind", FILLING)
def test_fills_are_the_pipelines(kind: str, served_by: ServedBy) -> None:
    # Texts with one mask also have the same sequences.
    served = served_by(kind)
    pipeline = transformers.pipeline(
        "fill-mask", model=served.model, tokenizer=served.tokenizer, device="cpu"
    )
    around = KINDS[kind].around
    for template in (*around, "{}".join(("", " ", around[0]))):
        text = template.replace("{}", served.tokenizer.mask_token)
        ours = served.post("/fill-mask", text, top_k=TOP_K)
        theirs: Any = pipeline(text, top_k=min(TOP_K + 30, len(served.tokenizer)))
        one_mask = template.count("{}") == 1
        special = set(served.tokenizer.all_special_ids)
        for our_fills, their_fills in zip(
            [ours] if one_mask else ours, [theirs] if one_mask else theirs, strict=True
        ):
            ordinary = [fill for fill in their_fills if fill["token"] not in special][:TOP_K]
            scores = by_token(our_fills, "score")
            assert scores == pytest.approx(by_token(ordinary, "score"), abs=TOLERANCE)
            for field in ("token_str", *["sequence"] * one_mask):
                ours_as, theirs_as = (by_token(fills, field) for fills in (our_fills, ordinary))
                assert {i: letters(text) for i, text in ours_as.items()} == {
                    i: letters(text) for i, text in theirs_as.items()
                }


def masked_pair(served: Served, index: int) -> dict[str, str]:
    first, second = (text.replace("{}", served.tokenizer.mask_token) for text in PAIRS[index])
    return {"text": first, "text_pair": second}


def per_mask(fills: Any) -> Any:
    """Return the fills of each mask, as of a text with several masks."""
    return [fills] if isinstance(fills[0], dict) else fills


@pytest.mark.parametrize("kind", PAIRED)
def test_fills_of_pairs(kind: str, served_by: ServedBy) -> None:
    # A missing second text would show, because the fills depend on it.
    served = served_by(kind)
    # transformers also lists the symbols that are always one token, such as "("
    every = zip(served.tokenizer.all_special_ids, served.tokenizer.all_special_tokens, strict=True)
    special = [token_id for token_id, token in every if token[0] in "[<"]
    for index in range(len(PAIRS)):
        pair = masked_pair(served, index)
        encoded = served.encode(*pair.values())
        positions = served.mask_positions(encoded)
        ours = per_mask(served.post("/fill-mask", pair, top_k=TOP_K))
        for position, fills in zip(positions, ours, strict=True):
            expected = served.log_probs(encoded)[0, position].exp()
            expected[special] = 0
            scores = [fill["score"] for fill in fills]
            assert scores == pytest.approx(expected.topk(TOP_K)[0].tolist(), abs=TOLERANCE)
            own = [expected[fill["token"]].item() for fill in fills]
            assert scores == pytest.approx(own, abs=TOLERANCE)
        if len(positions) == 1:
            before, after = " ".join(pair.values()).split(served.tokenizer.mask_token)
            for fill in ours[0]:
                assert fill["sequence"].startswith(before.rstrip())
                assert fill["sequence"].endswith(after.lstrip())
    first = f"The capital is {served.tokenizer.mask_token}"
    alone = served.post("/fill-mask", first)
    one, other = (
        served.post("/fill-mask", {"text": first, "text_pair": second})
        for second in ("Rome is old!", "She is.")
    )
    assert alone != one != other
    assert served.post("/fill-mask", {"text": first, "text_pair": None}) == alone


def chain(served: Served, encoded: Any, position: int, tokens: Sequence[int]) -> float:
    """Return the log-probability of several tokens in place of one mask, by the chain rule."""
    total = 0.0
    for done in range(len(tokens)):
        inserted = [*tokens[:done], *[served.tokenizer.mask_token_id] * (len(tokens) - done)]
        changed = {}
        for name, values in encoded.items():
            own = values[0].tolist()
            new = inserted if name == "input_ids" else [own[position]] * len(tokens)
            changed[name] = torch.tensor([own[:position] + new + own[position + 1 :]])
        total += served.log_probs(changed)[0, position + done, tokens[done]].item()
    return total


def test_targets_and_words_in_pairs(served_by: ServedBy) -> None:
    # The targets have one or several tokens.
    served = served_by("BERT")
    targets = ["rome", "capital of france", "tea cup", "she"]
    for index in range(len(PAIRS)):
        pair = masked_pair(served, index)
        encoded = served.encode(*pair.values())
        positions = served.mask_positions(encoded)
        wanted = per_mask(served.post("/fill-mask", pair, targets=targets))
        words = per_mask(
            served.post("/fill-mask", pair, granularity="word", max_word_tokens=2, top_k=5)
        )
        for position, scored, found in zip(positions, wanted, words, strict=True):
            assert {fill["token_str"] for fill in scored} == set(targets)
            assert len(found) == 5
            for fill in (*scored, *found):
                expected = chain(served, encoded, position, fill["tokens"])
                assert fill["log_prob"] == pytest.approx(expected, abs=TOLERANCE)
            assert any(len(fill["tokens"]) > 1 for fill in scored)


def test_joint_fills_of_a_pair(served_by: ServedBy) -> None:
    served = served_by("BERT")
    pair = masked_pair(served, 2)
    encoded = served.encode(*pair.values())
    fills = served.post("/fill-mask", pair, strategy="joint", order="left_to_right")
    assert len(fills) == 5
    for fill in fills:
        filled, expected = {name: value.clone() for name, value in encoded.items()}, 0.0
        for position, token in zip(served.mask_positions(encoded), fill["tokens"], strict=True):
            expected += served.log_probs(filled)[0, position, token].item()
            filled["input_ids"][0, position] = token
        assert fill["log_prob"] == pytest.approx(expected, abs=TOLERANCE)


def test_windows_of_a_pair(served_by: ServedBy) -> None:
    # A window contains a part of the first text and the entire second text.
    served, second = served_by("BERT"), "Where is she?"
    mask = served.tokenizer.mask_token
    words = (f"{TEXTS[0]} {TEXTS[2]} " * 12).split()
    text = " ".join([*words[:60], mask, *words[60:]])
    pair = {"text": text, "text_pair": second}
    assert served.client.post("/fill-mask", json={"inputs": pair}).status_code == 422
    fills = served.post("/fill-mask", pair, on_long_text="window")
    start, end = fills[0]["window"]
    assert 0 < start < text.index(mask) < end < len(text)
    encoded = served.encode(text[start:end], second)
    assert encoded["input_ids"].shape[1] == pytest.approx(70, abs=3)
    [position] = served.mask_positions(encoded)
    expected = served.log_probs(encoded)[0, position].exp()
    before, after = f"{text} {second}".split(mask)
    for fill in fills:
        assert fill["window"] == [start, end]
        assert fill["score"] == pytest.approx(expected[fill["token"]].item(), abs=TOLERANCE)
        assert fill["sequence"].startswith(before.strip())
        assert fill["sequence"].endswith(after.strip())


def expected_scores(served: Served, variant: str, *texts: str) -> list[tuple[int, float]]:
    """Return id and log-probability of each token of a text or a pair, from a pass per token.

    The variant within_word also masks the later tokens of the word, but not an equal word in the
    other text of a pair.
    """
    encoded = served.encode(*texts, return_special_tokens_mask=True)
    framing = encoded.pop("special_tokens_mask")[0].tolist()
    ids = encoded["input_ids"][0].tolist()
    # transformers' Python tokenizers, such as ESM's, have no words
    words: Sequence[object] = range(len(ids))
    if encoded.encodings:
        words = list(zip(encoded.sequence_ids(0), encoded.word_ids(0), strict=True))
    own = [place for place, special in enumerate(framing) if not special]
    hidden = [
        [other for other in own if other >= place and words[other] == words[place]]
        if variant == "within_word"
        else [place]
        for place in own
    ]
    log_probs = served.log_probs(encoded, hidden)
    return [(ids[place], log_probs[i, place, ids[place]].item()) for i, place in enumerate(own)]


def check_scores(ours: dict[str, Any], expected: Sequence[tuple[int, float]]) -> None:
    """Compare the scores of a text, or of a part of it, with those of transformers."""
    assert [one["token"] for one in ours["tokens"]] == [token for token, _ in expected]
    log_probs = [log_prob for _, log_prob in expected]
    assert [one["log_prob"] for one in ours["tokens"]] == pytest.approx(log_probs, abs=TOLERANCE)
    assert ours["log_prob"] == pytest.approx(sum(log_probs), abs=TOLERANCE * len(expected))


def within(tokens: list[dict[str, Any]], start: int, end: int) -> list[int]:
    """Return the indices of the tokens within these characters.

    Several tokens may have the same characters. A token without characters belongs to the
    characters before it.
    """
    return [
        i
        for i, one in enumerate(tokens)
        if start <= one["start"] and one["end"] <= end and (start < one["end"] or start == 0)
    ]


@pytest.mark.parametrize("variant", ["within_word", "original"])
@pytest.mark.parametrize("kind", FILLING)
def test_scores_of_texts_and_their_parts(kind: str, variant: str, served_by: ServedBy) -> None:
    # The spans are at the start, in the middle and at the end, and may divide a word.
    served = served_by(kind)
    texts = [text.replace("{}", FILLERS.get(kind, "the")) for text in KINDS[kind].around]
    answers = served.post("/score", texts, variant=variant)
    for text, whole in zip(texts, answers, strict=True):
        expected = expected_scores(served, variant, text)
        check_scores(whole, expected)
        tokens, count = whole["tokens"], len(whole["tokens"])
        assert "part" not in tokens[0]
        for first, last in ((0, 1), (count // 3, 2 * count // 3), (count - 2, count - 1)):
            start, end = tokens[first]["start"], tokens[last]["end"]
            [part] = served.post("/score", [text], variant=variant, span=[start, end])
            check_scores(part, [expected[i] for i in within(tokens, start, end)])
        start = tokens[count // 2]["start"]
        [part] = served.post("/score", [text], variant=variant, prefix=text[:start])
        check_scores(part, [expected[i] for i in within(tokens, start, len(text))])


@pytest.mark.parametrize("variant", ["within_word", "original"])
@pytest.mark.parametrize("kind", PAIRED)
def test_scores_of_pairs(kind: str, variant: str, served_by: ServedBy) -> None:
    served = served_by(kind)
    answers = served.post("/score", PLAIN_PAIRS, variant=variant)
    for pair, ours in zip(PLAIN_PAIRS, answers, strict=True):
        expected = expected_scores(served, variant, *pair.values())
        check_scores(ours, expected)
        encoded = served.tokenizer(*pair.values(), return_offsets_mapping=True)
        of_part = [
            (("text", "text_pair")[part], offsets)
            for part, offsets in zip(
                encoded.sequence_ids(0), encoded["offset_mapping"], strict=True
            )
            if part is not None
        ]
        for token, (part, (start, end)) in zip(ours["tokens"], of_part, strict=True):
            assert token["part"] == part
            written = pair[part][token["start"] : token["end"]]
            assert written.strip() == pair[part][start:end].strip()
            assert start <= token["start"] <= token["end"] <= end
        for part in pair:
            own = [i for i, token in enumerate(ours["tokens"]) if token["part"] == part]
            [half] = served.post("/score", [pair], variant=variant, part=part)
            check_scores(half, [expected[i] for i in own])
            prefix = pair[part][: ours["tokens"][own[-1]]["start"]]
            [end] = served.post("/score", [pair], variant=variant, part=part, prefix=prefix)
            check_scores(end, [expected[own[-1]]])


def test_marginals(served_by: ServedBy) -> None:
    # The embeddings of ESM-2 depend on the number of masks.
    served = served_by("ESM-2")
    columns = served.tokenizer.convert_tokens_to_ids(AMINO_ACIDS)

    def expected(text: str) -> Any:
        encoded = served.encode(text)
        places = range(1, encoded["input_ids"].shape[1] - 1)
        log_probs = served.log_probs(encoded, [[place] for place in places])
        return torch.stack([log_probs[i, p, columns] for i, p in enumerate(places)]).numpy()

    def rows(score: Any) -> Any:
        return np.array([token["target_log_probs"] for token in score["tokens"]])

    whole = rows(served.post("/score", PROTEIN, targets=AMINO_ACIDS))
    np.testing.assert_allclose(whole, expected(PROTEIN), atol=TOLERANCE)
    [part, other] = served.post("/score", [PROTEIN, PROTEIN[::-1]], targets=["A", "W"])
    np.testing.assert_allclose(rows(part), whole[:, [0, 18]], atol=1e-5)
    assert len(other["tokens"]) == len(PROTEIN)
    span = served.post("/score", PROTEIN, targets=["A", "W"], span=[3, 7])
    np.testing.assert_allclose(rows(span), whole[3:7, [0, 18]], atol=1e-5)
    with FillMask(served.bundle, threads=1) as model:
        first, second = model.marginals([PROTEIN, "MKT"], AMINO_ACIDS)
        assert first.dtype == np.float32
        np.testing.assert_allclose(first, whole, atol=1e-5)
        np.testing.assert_allclose(second, expected("MKT"), atol=TOLERANCE)
        np.testing.assert_array_equal(model.marginals("MKT", AMINO_ACIDS), second)
        with pytest.raises(InvalidRequestError, match=r'"AC" has 2 tokens; a score needs targets'):
            model.marginals(PROTEIN, ["AC"])


def check_labels(ours: list[dict[str, Any]], theirs: list[dict[str, Any]]) -> None:
    """Compare two rankings, in which labels with almost equal scores may change places."""
    scores = [one["score"] for one in ours]
    assert scores == sorted(scores, reverse=True)
    by_label = {one["label"]: one["score"] for one in theirs}
    assert {one["label"]: one["score"] for one in ours} == pytest.approx(by_label, abs=TOLERANCE)


@pytest.mark.parametrize("name", LABELLED)
def test_labels_are_the_pipelines(name: str, served_by: ServedBy) -> None:
    # The function depends on the type of the problem, not on the family.
    served = served_by(name, "labels")
    make: Any = transformers.TextClassificationPipeline
    pipeline = make(model=served.model, tokenizer=served.tokenizer, device="cpu")
    inputs = [TEXTS[0], "She drank a cup of tea (or coffee?).", "!", *PLAIN_PAIRS]
    of_problem = name in {"BERT", "several labels", "one label", "regression"}
    for function in (None, *("softmax", "sigmoid", "none") * of_problem):
        options = {} if function is None else {"function_to_apply": function}
        ours = served.post("/classify", inputs, function_to_apply=function)
        for one, labels in zip(inputs, ours, strict=True):
            check_labels(labels, pipeline(one, top_k=None, **options))
    one, labels = inputs[-1], served.post("/classify", inputs[-1])
    assert served.post("/", one, top_k=99) == labels
    assert served.post("/classify", one, top_k=1) == [labels[0][:1]]
    [long] = served.post("/classify", [LONG], on_long_text="truncate", function_to_apply="none")
    logits = served.logits(LONG, truncation=True, max_length=max_tokens(served))
    expected = sorted(logits.tolist(), reverse=True)
    assert [label["score"] for label in long] == pytest.approx(expected, abs=TOLERANCE)


def max_tokens(served: Served) -> int:
    return int(served.client.get("/info").json()["limits"]["max_tokens"])


@pytest.mark.parametrize("head", ["ForNextSentencePrediction", "ForPreTraining"])
@torch.inference_mode()
def test_next_sentence_prediction(head: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    # BertForPreTraining has the tasks fill-mask and text-classification, in this order.
    fills = head == "ForPreTraining"
    with serve(tmp_path_factory.mktemp("next"), "BERT", head) as served:
        for pair in PLAIN_PAIRS:
            outputs = served.model(**served.encode(*pair.values()))
            logits = outputs.seq_relationship_logits if fills else outputs.logits
            expected = dict(
                zip(("is_next", "not_next"), torch.softmax(logits[0], -1).tolist(), strict=True)
            )
            [labels] = served.post("/classify", pair)
            check_labels(labels, [{"label": k, "score": v} for k, v in expected.items()])
        info = served.client.get("/info").json()
        assert info["labels"] == ["is_next", "not_next"]
        assert info["tasks"] == ["fill-mask", "text-classification"][not fills :]
        if not fills:
            assert served.post("/", pair) == served.post("/classify", pair)
            return
        masked = masked_pair(served, 1)
        encoded = served.encode(*masked.values())
        [position] = served.mask_positions(encoded)
        scores = torch.softmax(served.model(**encoded).prediction_logits[0, position], -1)
        found = served.post("/fill-mask", masked)
        assert served.post("/", masked) == found
        for fill in found:
            assert fill["score"] == pytest.approx(scores[fill["token"]].item(), abs=TOLERANCE)


@pytest.mark.parametrize("kind", RERANKERS)
def test_ranks(kind: str, served_by: ServedBy) -> None:
    # Also where the query or a text exceeds the model's input.
    served = served_by(kind, "one logit")
    texts = ["She is in Rome.", "a cup of tea", LONG, "!", f"Rome {LONG}"]
    limit = max_tokens(served)
    for query in ("Where is she?", LONG):
        logits = [
            served.logits(query, text, truncation=True, max_length=limit).item() for text in texts
        ]
        scores = torch.sigmoid(torch.tensor(logits)).tolist()
        body: dict[str, Any] = {"query": query, "texts": texts, "truncate": True}
        raw = served.client.post("/rerank", json=body | {"raw_scores": True}).json()
        ranks = served.client.post("/rerank", json=body).json()
        assert [one["index"] for one in ranks] == [one["index"] for one in raw]
        for one, rank in zip(raw, ranks, strict=True):
            assert one["score"] == pytest.approx(logits[one["index"]], abs=TOLERANCE)
            assert rank["score"] == pytest.approx(scores[one["index"]], abs=TOLERANCE)
        documents = {"query": query, "documents": texts}
        for path in ("/v1/rerank", "/v2/rerank"):
            results = served.client.post(path, json=documents).json()["results"]
            assert [(one["index"], one["relevance_score"]) for one in results] == [
                (one["index"], one["score"]) for one in ranks
            ]
