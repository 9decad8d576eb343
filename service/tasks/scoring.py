"""The use case: texts in, what the model thinks of each of their tokens out. No HTTP.

Pseudo-log-likelihood (Salazar et al. 2020, "Masked Language Model Scoring", section 2): each token
is masked in turn and predicted from the rest; the sum of the log-probabilities is the text's score.
So scored, a word of several tokens gives itself away. The within-word variant (Kauf and Ivanova
2023, "A Better Way to Do Masked Language Model Scoring", section 3) masks the rest of the word too.

Shapes: T tokens of a text, t those that are not special.
"""

import asyncio
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Literal

import numpy as np

from service.engine.batch import ModelPass, PassOutputs
from service.engine.batcher import Batcher
from service.errors import InvalidRequestError
from service.observability.tracing import Tracer
from service.tasks.response_size import Reserve, no_bound
from service.tasks.results import RejectedText
from service.tokenization.reader import TextReader, text_label
from service.tokenization.tokenizer import LONG_TEXT_CHARS, EncodedWords, Tokenizer

Variant = Literal["within_word", "original"]
DEFAULT_VARIANT: Variant = "within_word"

# of a pass: its place in the queue, its arrays, its score as an object and in JSON
_PASS_BYTES = 3_000


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


class ScoringPipeline:
    """Scores texts.

    Args:
        tokenizer: the model's.
        batcher: where the passes are computed.
        max_tokens: longest text the model reads, special tokens included.
        max_passes: most passes of one call; a text takes one for each of its tokens.
        spans: told of what is not told by the batcher, where requests are traced.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        batcher: Batcher,
        max_tokens: int,
        max_passes: int,
        spans: Tracer | None = None,
    ) -> None:
        self._tokenizer = tokenizer
        self._reader = TextReader(tokenizer, max_tokens)
        self._batcher = batcher
        self._max_passes = max_passes
        self._spans = spans

    async def score(
        self,
        texts: Sequence[str],
        variants: Sequence[Variant],
        called: str,
        *,
        report: bool = False,
        reserve: Reserve = no_bound,
    ) -> list[TextScore | RejectedText]:
        """Score each text.

        Args:
            texts: at least one, without masks.
            variants: of each what is masked beside the token that is predicted.
            called: what the caller calls the texts, for errors.
            report: score the others where a text is refused, and say why.
            reserve: takes the memory that scoring will hold, before anything is computed.

        Raises:
            InvalidRequestError: the texts take too many passes; or, unless that is to be reported,
                one has a mask or is too long.
            FillMaskError: the batcher does not take the requests, or there is no memory for them.
        """
        if sum(map(len, texts)) < LONG_TEXT_CHARS:
            read = self._read_all(texts, called, report=report)
        else:
            read = await asyncio.to_thread(self._read_all, texts, called, report=report)
        reserve(sum(_memory_bytes(words) for words in read if isinstance(words, EncodedWords)))
        mask = self._tokenizer.mask_token_id
        requests = [
            request
            for words, variant in zip(read, variants, strict=True)
            if isinstance(words, EncodedWords)
            for request in score_passes(words, variant, mask)
        ]
        answers = await self._batcher.submit(requests, bulk=True) if requests else []
        return await asyncio.to_thread(self._scores, read, answers)

    @property
    def _read_all(self) -> Callable[..., list[EncodedWords | RejectedText]]:
        # not an attribute: with a method of its own the object would outlive the model
        return self._read if self._spans is None else self._spans.traced("tokenize", self._read)

    def _read(
        self, texts: Sequence[str], called: str, *, report: bool
    ) -> list[EncodedWords | RejectedText]:
        read: list[EncodedWords | RejectedText] = []
        for index, text in enumerate(texts):
            try:
                read.append(self._reader.read_words(text, text_label(called, index, texts)))
            except InvalidRequestError as error:
                if not report:
                    raise
                read.append(RejectedText(error.text))
        passes = sum(len(words.positions) for words in read if isinstance(words, EncodedWords))
        if passes > self._max_passes:
            raise InvalidRequestError(
                f"{called} would take {passes} passes of the model, one a token; at most "
                f"{self._max_passes} are allowed."
            )
        return read

    def _scores(
        self, read: Sequence[EncodedWords | RejectedText], answers: Sequence[PassOutputs]
    ) -> list[TextScore | RejectedText]:
        remaining = iter(answers)
        scores: list[TextScore | RejectedText] = []
        for words in read:
            if isinstance(words, RejectedText):
                scores.append(words)
                continue
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
        scored = [score for score in scores if isinstance(score, TextScore)]
        for score in scored:
            score.rank += sum(other.log_prob > score.log_prob for other in scored)
        return scores


def _memory_bytes(words: EncodedWords) -> int:
    """Memory of the passes of a text, each with the text's ids, and of their answer."""
    passes = len(words.positions)
    return passes * (_PASS_BYTES + words.input_ids.nbytes)


def score_passes(words: EncodedWords, variant: Variant, mask_token_id: int) -> Iterator[ModelPass]:
    """One request for each token of a text: itself masked, or the rest of its word as well."""
    one = np.zeros(1, dtype=np.int64)
    for index, position in enumerate(words.positions.tolist()):
        rest = words.words[index:] == words.words[index]
        masked = words.positions[index:][rest] if variant == "within_word" else one + position
        input_ids = words.input_ids.copy()
        input_ids[masked] = mask_token_id
        target = words.input_ids[position : position + 1]
        yield ModelPass(input_ids, one + position, 1, target[None, :])
