"""The use case: texts in, what the model thinks of each of their tokens out. No HTTP.

Pseudo-log-likelihood (Salazar et al. 2020, "Masked Language Model Scoring", section 2): each token
is masked in turn and predicted from the rest; the sum of the log-probabilities is the text's score.
So scored, a word of several tokens gives itself away. The within-word variant (Kauf and Ivanova
2023, "A Better Way to Do Masked Language Model Scoring", section 3) masks the rest of the word too.

Shapes: T tokens of a text, t those that are not special.
"""

import asyncio
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Literal

import numpy as np

from service.batch import Fills, Request
from service.batcher import Batcher
from service.errors import InvalidRequestError
from service.text_reader import TextReader, place
from service.tokenizer import LONG_TEXT_CHARS, Tokenizer, Words

Variant = Literal["within_word", "original"]
DEFAULT_VARIANT: Variant = "within_word"


@dataclass(slots=True)
class TokenScore:
    """One token of a text.

    Attributes:
        token: its id.
        token_str: the token as text.
        start: its first character in the text.
        end: the character after its last.
        log_prob: given the rest of the text, in nats.
        surprisal: the same as information, in bits: -log2 of the probability.
    """

    token: int
    token_str: str
    start: int
    end: int
    log_prob: float
    surprisal: float


@dataclass(slots=True)
class TextScore:
    """A text.

    Attributes:
        log_prob: pseudo-log-likelihood, the sum over the tokens, in nats.
        pseudo_perplexity: exp of minus the mean over the tokens.
        rank: among the texts of the request by log_prob, 1 for the likeliest.
        tokens: in order, special ones left out.
    """

    log_prob: float
    pseudo_perplexity: float
    rank: int
    tokens: list[TokenScore]


class Scoring:
    """Scores texts.

    Args:
        tokenizer: the model's.
        batcher: where the passes are computed.
        max_tokens: longest text the model reads, special tokens included.
        max_passes: most passes of one call; a text takes one for each of its tokens.
    """

    def __init__(
        self, tokenizer: Tokenizer, batcher: Batcher, max_tokens: int, max_passes: int
    ) -> None:
        self._tokenizer = tokenizer
        self._reader = TextReader(tokenizer, max_tokens)
        self._batcher = batcher
        self._max_passes = max_passes

    async def score(self, texts: Sequence[str], variant: Variant, called: str) -> list[TextScore]:
        """Score each text.

        Args:
            texts: at least one, without masks.
            variant: what is masked beside the token that is predicted.
            called: what the caller calls the texts, for errors.

        Raises:
            InvalidRequestError: a text has a mask or is too long, or they take too many passes.
            FillMaskError: the batcher does not take the requests.
        """
        if sum(map(len, texts)) < LONG_TEXT_CHARS:
            read = self._read(texts, called)
        else:
            read = await asyncio.to_thread(self._read, texts, called)
        mask = self._tokenizer.mask_token_id
        requests = [request for words in read for request in score_passes(words, variant, mask)]
        answers = await self._batcher.submit(requests, patient=True)
        return await asyncio.to_thread(self._scores, read, answers)

    def _read(self, texts: Sequence[str], called: str) -> list[Words]:
        read = [
            self._reader.words(text, place(called, index, texts))
            for index, text in enumerate(texts)
        ]
        passes = sum(len(words.positions) for words in read)
        if passes > self._max_passes:
            raise InvalidRequestError(
                f"{called} would take {passes} passes of the model, one a token; at most "
                f"{self._max_passes} are allowed."
            )
        return read

    def _scores(self, read: Sequence[Words], answers: Sequence[Fills]) -> list[TextScore]:
        remaining = iter(answers)
        scores = []
        for words in read:
            own = islice(remaining, len(words.positions))
            log_probs = [float(answer.target_log_probs[0, 0]) for answer in own]
            total = math.fsum(log_probs)
            tokens = [
                TokenScore(
                    token=token,
                    token_str=self._tokenizer.token_str(token),
                    start=start,
                    end=end,
                    log_prob=log_prob,
                    surprisal=-log_prob / math.log(2),
                )
                for token, (start, end), log_prob in zip(
                    words.input_ids[words.positions].tolist(), words.spans, log_probs, strict=True
                )
            ]
            scores.append(TextScore(total, math.exp(-total / len(tokens)), 1, tokens))
        for score in scores:
            score.rank += sum(other.log_prob > score.log_prob for other in scores)
        return scores


def score_passes(words: Words, variant: Variant, mask_token_id: int) -> Iterator[Request]:
    """One request for each token of a text: itself masked, or the rest of its word as well."""
    one = np.zeros(1, dtype=np.int64)
    for index, position in enumerate(words.positions.tolist()):
        rest = words.words[index:] == words.words[index]
        masked = words.positions[index:][rest] if variant == "within_word" else one + position
        input_ids = words.input_ids.copy()
        input_ids[masked] = mask_token_id
        target = words.input_ids[position : position + 1]
        yield Request(input_ids, one + position, 1, target[None, :])
