"""The scoring task, which returns scores of texts and of their tokens.

The model predicts each token of a text with a mask in place of the token. The pseudo-log-likelihood
of the text is the sum of the log-probabilities (Salazar et al. 2020, "Masked Language Model
Scoring", section 2). This sum overestimates the probability of words of several tokens, because the
model sees the other tokens of the word. The within-word variant also masks the later tokens of the
word (Kauf and Ivanova 2023, "A Better Way to Do Masked Language Model Scoring", section 3).

A part of a text has the same scores as in the whole text. The sum over this part is its conditional
pseudo-log-likelihood, given the rest of the text.
"""

import asyncio
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice

from service.engine.batcher import Batcher
from service.engine.passes import PassOutputs
from service.errors import InvalidRequestError
from service.observability.tracing import Tracer
from service.tasks.response_size import Reserve, reserve_nothing
from service.tasks.results import RejectedText
from service.tasks.score_plan import Part, ScoreOptions, ScorePlan, plan_scores
from service.tokenization.encoded_text import InputText, TextPair
from service.tokenization.reader import TextReader, text_label
from service.tokenization.tokenizer import LONG_TEXT_CHARS, Tokenizer


@dataclass(slots=True)
class TokenScore:
    """Score of one token.

    Attributes:
        token: the token's id.
        start: index of the token's first character in the text, or in its part of a pair.
        end: index after the token's last character.
        log_prob: log-probability given the tokens that the model sees, in nats.
        surprisal: -log2 of the same probability, in bits.
        part: part of the pair that contains the token. None for a single text.
    """

    token: int
    token_str: str
    start: int
    end: int
    log_prob: float
    surprisal: float
    part: Part | None = None


@dataclass(slots=True)
class TextScore:
    """Score of one text.

    Attributes:
        log_prob: pseudo-log-likelihood, the sum of the tokens' log-probabilities, in nats.
        pseudo_perplexity: exponential of the negative mean log-probability of the tokens.
        rank: rank by log_prob among the texts of the request. The most probable text has rank 1.
        tokens: scores of the scored tokens in order, without special tokens.
    """

    log_prob: float
    pseudo_perplexity: float
    rank: int
    tokens: list[TokenScore]


class ScoringPipeline:
    """Pipeline that scores texts.

    Args:
        max_tokens: maximum length of a text in tokens, including special tokens.
        max_passes: maximum number of passes for one request. A text takes one pass per scored
            token.
        tracer: tracer that records a span for tokenization. The batcher records its own spans.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        batcher: Batcher,
        max_tokens: int,
        max_passes: int,
        tracer: Tracer | None = None,
    ) -> None:
        self._tokenizer = tokenizer
        self._reader = TextReader(tokenizer, max_tokens)
        self._batcher = batcher
        self._max_passes = max_passes
        self._tracer = tracer

    async def score(
        self,
        texts: Sequence[InputText],
        options: Sequence[ScoreOptions],
        label: str,
        *,
        report_errors: bool = False,
        reserve: Reserve = reserve_nothing,
    ) -> list[TextScore | RejectedText]:
        """Score each text.

        Args:
            texts: one or more texts or pairs without masks.
            options: options of each text.
            label: the client's name for the texts, for error messages.
            report_errors: True if the result contains the errors of invalid texts.
            reserve: function that reserves the request's memory before the first pass.

        Raises:
            InvalidRequestError: the texts need too many passes. Without `report_errors`, an
                invalid text also raises this error.
            FillMaskError: the batcher rejects the passes, or `reserve` rejects the request.
        """
        if sum(map(len, texts)) < LONG_TEXT_CHARS:
            plans = self._plan_all(texts, options, label, report_errors=report_errors)
        else:
            plans = await asyncio.to_thread(
                self._plan_all, texts, options, label, report_errors=report_errors
            )
        valid = [plan for plan in plans if isinstance(plan, ScorePlan)]
        reserve(sum(plan.memory_bytes for plan in valid))
        mask = self._tokenizer.mask_token_id
        passes = [one for plan in valid for one in plan.passes(mask)]
        outputs = await self._batcher.submit(passes, bulk=True) if passes else []
        return await asyncio.to_thread(self._scores, texts, plans, outputs)

    @property
    def _plan_all(self) -> Callable[..., list[ScorePlan | RejectedText]]:
        # _plan_all is a property, because an attribute with a bound method of its own object is a
        # reference cycle. A pipeline with such a cycle outlives the model.
        plan = self._plan
        return plan if self._tracer is None else self._tracer.traced("tokenize", plan)

    def _plan(
        self,
        texts: Sequence[InputText],
        options: Sequence[ScoreOptions],
        label: str,
        *,
        report_errors: bool,
    ) -> list[ScorePlan | RejectedText]:
        plans: list[ScorePlan | RejectedText] = []
        for index, (text, own) in enumerate(zip(texts, options, strict=True)):
            name = text_label(label, index, texts)
            try:
                words = self._reader.read_words(text, name)
                plans.append(plan_scores(text, words, own, name))
            except InvalidRequestError as error:
                if not report_errors:
                    raise
                plans.append(RejectedText(error.text))
        passes = sum(len(plan.scored) for plan in plans if isinstance(plan, ScorePlan))
        if passes > self._max_passes:
            raise InvalidRequestError(
                f"{label} needs {passes} passes of the model, one per scored token; the limit is "
                f"{self._max_passes}. Use fewer or shorter texts, or set span or prefix to score "
                "only a part of each text."
            )
        return plans

    def _scores(
        self,
        texts: Sequence[InputText],
        plans: Sequence[ScorePlan | RejectedText],
        outputs: Sequence[PassOutputs],
    ) -> list[TextScore | RejectedText]:
        remaining = iter(outputs)
        scores: list[TextScore | RejectedText] = []
        for text, plan in zip(texts, plans, strict=True):
            if isinstance(plan, RejectedText):
                scores.append(plan)
                continue
            own = islice(remaining, len(plan.scored))
            log_probs = [float(output.target_log_probs[0, 0]) for output in own]
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
                    plan.tokens.tolist(), plan.spans, log_probs, strict=True
                )
            ]
            if isinstance(text, TextPair):
                _name_parts(tokens, plan, text)
            scores.append(TextScore(total, math.exp(-total / len(tokens)), 1, tokens))
        scored = [score for score in scores if isinstance(score, TextScore)]
        for score in scored:
            score.rank += sum(other.log_prob > score.log_prob for other in scored)
        return scores


def _name_parts(tokens: Sequence[TokenScore], plan: ScorePlan, pair: TextPair) -> None:
    """Store the part of each token of a pair. Spans then count from the start of their part."""
    for token, part in zip(tokens, plan.parts.tolist(), strict=True):
        token.part = "text_pair" if part else "text"
        if part:
            token.start -= pair.second_start
            token.end -= pair.second_start
