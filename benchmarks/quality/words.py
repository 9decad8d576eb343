"""Validity and accuracy of fills by whole words, compared with fills by tokens.

    .venv-dev/bin/python -m benchmarks.quality.words [BUNDLE [TEXTS]]

The script masks one random word of each text with a fixed seed. TEXTS is a file with one text per
line. The default TEXTS is the held-out sample of the comparison (comparison/TEXTS.md). The accuracy
is the share of texts whose fills contain the masked word. A fill is valid if it is a whole word
without special tokens.
"""

from __future__ import annotations

import asyncio
import random
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from benchmarks.comparison.texts import FILE as TEXTS
from fillmask.bundles.bundle import default_bundle_path, read_bundle
from fillmask.engine.batch_arrays import Batch
from fillmask.engine.passes import ModelPass, PassOutputs, no_targets
from fillmask.engine.runtime import Runtime
from fillmask.results.fills import WordFill
from fillmask.tasks.fill_mask.ranking import rank_tokens
from fillmask.tasks.fill_mask.words import WordSearch
from fillmask.tokenization.tokenizer import Tokenizer

TOP_K = 5
MAX_WORD_TOKENS = 3


def main() -> None:
    """Print the accuracy by granularity and the invalid fills."""
    bundle = Path(sys.argv[1]) if len(sys.argv) > 1 else default_bundle_path()
    texts = Path(sys.argv[2]) if len(sys.argv) > 2 else TEXTS
    found, bad = asyncio.run(look(bundle, texts.read_text(encoding="utf-8").splitlines()))
    print("| masked | texts | granularity | first | among five |\n|---|--:|---|--:|--:|")
    for kind in ("a word of one token", "a word of several"):
        texts_of_kind = found[kind]
        for granularity in ("token", "word"):
            first, among = (
                100 * found[f"{kind}, {granularity}, {place}"] / max(1, texts_of_kind)
                for place in ("first", "among")
            )
            print(f"| {kind} | {texts_of_kind} | {granularity} | {first:.1f} % | {among:.1f} % |")
    print(f"\n{found['fills']} fills, {found['fills of several']} of several tokens.")
    print(f"{len(bad)} are not whole words{':' if bad else '.'}")
    for line in bad:
        print(line)


async def look(directory: Path, texts: Sequence[str]) -> tuple[Counter[str], list[str]]:
    """Fill the masked words of texts by tokens and by whole words.

    Returns:
        Counts by name and the invalid fills.
    """
    bundle = read_bundle(directory)
    tokenizer, runtime = Tokenizer.from_bundle(bundle), Runtime(bundle.model_path)

    async def submit(requests: Sequence[ModelPass]) -> list[PassOutputs]:
        batch = Batch.pack(requests)
        return batch.unpack(runtime.run(batch))

    vocab_size = bundle.architecture.vocab_size
    search = WordSearch(tokenizer, submit, vocab_size, TOP_K, MAX_WORD_TOKENS)
    found: Counter[str] = Counter()
    bad: list[str] = []
    draw = random.Random(0)  # noqa: S311 - a choice, not a secret
    for text in texts:
        drawn = _masked(text, tokenizer, bundle.max_tokens - MAX_WORD_TOKENS, draw)
        if drawn is None:
            continue
        masked, word, tokens = drawn
        kind = "a word of one token" if tokens == 1 else "a word of several"
        found[kind] += 1
        encoded = tokenizer.encode(masked)
        asked = TOP_K + len(tokenizer.special_token_ids)
        request = ModelPass(encoded.input_ids, encoded.mask_positions, asked, no_targets(1))
        [[single]] = rank_tokens(tokenizer, [masked], [encoded], await submit([request]), TOP_K)
        words = await search.fill(masked, encoded, 0)
        for granularity, fills in (("token", single), ("word", words)):
            same = [fill.token_str.strip().casefold() == word.casefold() for fill in fills]
            found[f"{kind}, {granularity}, first"] += any(same[:1])
            found[f"{kind}, {granularity}, among"] += any(same)
        found["fills"] += len(words)
        found["fills of several"] += sum(len(fill.tokens) > 1 for fill in words)
        bad += [
            f"{fill.token_str!r} in {masked!r}" for fill in words if not _whole(fill, tokenizer)
        ]
    return found, bad


def _masked(
    text: str, tokenizer: Tokenizer, max_tokens: int, draw: random.Random
) -> tuple[str, str, int] | None:
    """Mask a random word of a text.

    Returns:
        The masked text, the word and its number of tokens. None for a text that is too long or has
        no word.
    """
    words = tokenizer.encode_words(text)
    counts = Counter(words.words.tolist())
    spans: dict[int, tuple[int, int]] = {}
    for word, (start, end) in zip(words.words.tolist(), words.spans, strict=True):
        spans[word] = (spans.get(word, (start, end))[0], end)
    allowed = [word for word, (start, end) in spans.items() if text[start:end].isalpha()]
    if len(words.input_ids) > max_tokens or not allowed:
        return None
    word = draw.choice(allowed)
    start, end = spans[word]
    return f"{text[:start]}{tokenizer.mask_token}{text[end:]}", text[start:end], counts[word]


def _whole(fill: WordFill, tokenizer: Tokenizer) -> bool:
    """Return whether a fill is a whole word without special tokens."""
    text = fill.token_str.strip()
    reads_well = (
        bool(text)
        and all(c.isalnum() or c in "'\N{RIGHT SINGLE QUOTATION MARK}-" for c in text)
        and text[0].isalnum()
    )
    special = set(fill.tokens) & set(tokenizer.special_token_ids)
    return reads_well and not special and fill.sequence.count(text) > 0


if __name__ == "__main__":
    main()
