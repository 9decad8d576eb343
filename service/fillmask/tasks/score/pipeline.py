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
from collections.abc import Collection, Iterator, Sequence
from itertools import chain, islice

from fillmask.arrays import IntArray, check_finite, int_array
from fillmask.engine.batcher import Batcher
from fillmask.engine.passes import PassOutputs
from fillmask.errors import InvalidRequestError, quote
from fillmask.observability.request_context import Tracer
from fillmask.parameters.limits import told_passes
from fillmask.parameters.texts import InputText, TextPair
from fillmask.tasks.fill_mask.targets import check_targets_size
from fillmask.tasks.pipeline import Inputs, Parts, Pipeline, tokenize
from fillmask.tasks.result import RejectedText
from fillmask.tasks.score.parameters import Part, ScoreParameters
from fillmask.tasks.score.plan import PlannedScores, ScorePlan, plan_scores
from fillmask.tasks.score.results import TextScore, TokenScore, rank_scores
from fillmask.tokenization.reader import TextReader
from fillmask.tokenization.tokenizer import Tokenizer


async def load_scores(parts: Parts) -> "ScoringPipeline":
    """Return the pipeline of a model, whose fills are right."""
    return ScoringPipeline(
        parts.tokenizer, parts.batcher, parts.bundle.max_tokens, parts.max_passes, parts.tracer
    )


class ScoringPipeline(Pipeline[ScoreParameters, PlannedScores, TextScore]):
    """Pipeline that scores texts.

    Args:
        max_tokens: maximum length of a text in tokens, including special tokens.
        max_passes: maximum number of passes for one request. A text takes one pass per scored
            token.
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

    async def plan(self, inputs: Inputs[ScoreParameters]) -> PlannedScores:
        """Tokenize texts without masks, and select the tokens to score."""

        def read() -> list[ScorePlan | RejectedText]:
            ids = self._target_ids({one.targets for one in inputs.parameters})

            def plan_one(text: InputText, own: ScoreParameters, name: str) -> ScorePlan:
                words = self._reader.read_words(text, name)
                return plan_scores(text, words, own, ids[own.targets], name)

            return inputs.each(plan_one)

        planned = PlannedScores(await tokenize(read, sum(map(len, inputs.texts)), self._tracer))
        passes = sum(len(plan.scored) for plan in planned.plans)
        if passes > self._max_passes:
            raise InvalidRequestError(
                f"{inputs.label} needs {passes} passes of the model, one per scored token; the "
                f"limit is {told_passes(self._max_passes)}. Use fewer or shorter texts, or set "
                "span or prefix to score only a part of each text."
            )
        return planned

    async def run(self, plan: PlannedScores) -> list[TextScore | RejectedText]:
        mask = self._tokenizer.mask_token_id
        passes = [one for text in plan.plans for one in text.passes(mask)]
        outputs = await self._batcher.submit(passes, bulk=True) if passes else []
        return await asyncio.to_thread(self._scores, plan, outputs)

    def _target_ids(
        self, lists: Collection[tuple[str, ...] | None]
    ) -> dict[tuple[str, ...] | None, IntArray]:
        """Return the ids (K,) of the targets in each list.

        Raises:
            InvalidRequestError: a target is not one token, or the lists are too large.
        """
        check_targets_size(targets for targets in lists if targets)
        ids = {
            targets: [self._tokenizer.encode_target(one) for one in targets or ()]
            for targets in lists
        }
        for targets, tokens in ids.items():
            for target, own in zip(targets or (), tokens, strict=True):
                if len(own) > 1:
                    raise InvalidRequestError(
                        f"The target {quote(target)} has {len(own)} tokens; a score needs targets "
                        "of one token."
                    )
        return {targets: int_array(list(chain(*tokens))) for targets, tokens in ids.items()}

    def _scores(
        self, planned: PlannedScores, outputs: Sequence[PassOutputs]
    ) -> list[TextScore | RejectedText]:
        remaining = iter(outputs)
        scores: list[TextScore | RejectedText] = []
        for plan in planned.texts:
            if isinstance(plan, RejectedText):
                scores.append(plan)
                continue
            own = islice(remaining, len(plan.scored))
            rows = [output.target_log_probs[0] for output in own]
            check_finite(rows)
            log_probs = [row.tolist() for row in rows]
            total = math.fsum(row[0] for row in log_probs)
            tokens = tuple(self._token_scores(plan, log_probs))
            scores.append(TextScore(total, math.exp(-total / len(tokens)), 1, tokens))
        return rank_scores(scores)

    def _token_scores(
        self, plan: ScorePlan, log_probs: Sequence[Sequence[float]]
    ) -> Iterator[TokenScore]:
        """Yield the score of each token. In a pair, spans count from the start of their part.

        The log-probabilities of a token are its own and then those of the targets.
        """
        pair = plan.text if isinstance(plan.text, TextPair) else None
        for token, (start, end), second, (log_prob, *targets) in zip(
            plan.tokens.tolist(), plan.spans, plan.parts.tolist(), log_probs, strict=True
        ):
            offset = pair.second_start if pair is not None and second else 0
            part: Part = "text_pair" if second else "text"
            yield TokenScore(
                token=token,
                token_str=self._tokenizer.token_str(token),
                start=start - offset,
                end=end - offset,
                log_prob=log_prob,
                surprisal=-log_prob / math.log(2),
                part=None if pair is None else part,
                target_log_probs=tuple(targets) or None,
            )
