"""Bugs of admission, queue and workers."""

from tests.simulation.bugs.bug import bug

_BATCHER = "engine/batcher.py"
_ADMISSION = "engine/admission.py"
_QUEUE = "engine/batch_formation.py"

ENGINE = (
    bug(
        "known: an estimate never recovers from a stall",
        _ADMISSION,
        "            seconds = min(seconds, _MAX_SLOWDOWN * tokens / self.tokens_per_s)",
        "            pass",
        _ADMISSION,
        "return max(large, self._all.tokens_per_s) if large else None",
        "return large or None",
    ),
    bug(
        "known: the tokens of a failed worker are released twice",
        _BATCHER,
        "            self._release_tokens(waiting)\n",
        "            self._release_tokens([*batch, *waiting])\n",
    ),
    bug(
        "a wake-up is lost",
        _BATCHER,
        "            self._wake(len(queued))\n",
        "            if not self._queue or len(self._idle) == len(self._workers):\n"
        "                self._wake(len(queued))\n",
    ),
    bug(
        "a worker that finds nothing to do ends",
        _BATCHER,
        "            while not self._queue and not self._closing:",
        "            if not self._queue and not self._closing:",
    ),
    bug(
        "closing wakes only one worker",
        _BATCHER,
        """            self._closing = True
            self._wake(len(self._workers))
        for""",
        """            self._closing = True
            self._wake(1)
        for""",
    ),
    bug(
        "a cancelled request keeps its tokens",
        _BATCHER,
        "            self._release_tokens(self._queue.remove(",
        "            list(self._queue.remove(",
    ),
    bug(
        "a cancelled request stays in the queue",
        _BATCHER,
        "            self._discard(request)\n",
        "            self._admission.release(tokens, bulk=bulk, parts=parts)\n",
    ),
    bug(
        "tokens return to the wrong lane",
        _BATCHER,
        "self._admission.release(queued.model_pass.tokens, bulk=queued.bulk, parts=queued.parts)",
        "self._admission.release(queued.model_pass.tokens, bulk=False, parts=queued.parts)",
    ),
    bug(
        "a failed batch keeps its tokens",
        _BATCHER,
        """                try:
                    results = self._compute(batch)
                finally:
                    self._release(batch)
""",
        """                results = self._compute(batch)
                if not isinstance(results[0], Exception):
                    self._release(batch)
""",
    ),
    bug(
        "a failed worker forgets the waiting requests",
        _BATCHER,
        "        failed = [*batch, *waiting]\n",
        "        failed = batch\n",
    ),
    bug(
        "a failed worker forgets its own batch",
        _BATCHER,
        "        failed = [*batch, *waiting]\n",
        "        failed = waiting\n",
    ),
    bug(
        "two passes swap their results",
        _BATCHER,
        "            for queued, result in zip(batch, results, strict=True):",
        "            last = results[::-1][:2] if len(batch) == 3 else results[1:]\n"
        "            for queued, result in zip(batch, [*results[:1], *last], strict=True):",
    ),
    bug(
        "one bad pass fails its whole batch",
        _BATCHER,
        "            if len(queued) == 1:\n                return [error]\n",
        "            return [error] * len(queued)\n",
    ),
    bug(
        "a late result meets a cancelled request",
        "engine/pending_requests.py",
        "        if self.future.done():\n            return\n",
        "",
    ),
    bug(
        "rejected requests count as load",
        _ADMISSION,
        """        self.check(tokens, bulk=bulk, parts=parts)
        self._accepted[bulk] += tokens
""",
        """        self._accepted[bulk] += tokens
        self.check(0, bulk=bulk, parts=parts)
""",
    ),
    bug(
        "a lane accepts more than its limit",
        _ADMISSION,
        "if self._accepted[bulk] + tokens > self._max_tokens[bulk]:",
        "if self._accepted[bulk] > self._max_tokens[bulk]:",
    ),
    bug(
        "an idle service rejects its first requests",
        _ADMISSION,
        "        return 0 if throughput is None else tokens / (throughput * self._workers)",
        "        tokens += self._max_tokens[False]\n"
        "        return 0 if throughput is None else tokens / (throughput * self._workers) / 9",
    ),
    bug(
        "known: the parts of a request reject each other",
        _ADMISSION,
        "            parts.admitted = True\n",
        "            pass\n",
    ),
    bug(
        "Retry-After is zero",
        _ADMISSION,
        "return min(max(1, math.ceil(self._seconds_for(tokens))), MAX_RETRY_AFTER_S)",
        "return min(round(self._seconds_for(tokens)), MAX_RETRY_AFTER_S)",
    ),
    bug(
        "only slower batches change the estimate",
        _ADMISSION,
        "        self._tokens += tokens - _DECAY * self._tokens\n",
        "        if self._seconds and tokens / seconds > self.tokens_per_s:\n"
        "            return\n"
        "        self._tokens += tokens - _DECAY * self._tokens\n",
    ),
    bug(
        "a batch loses the pass that does not fit",
        _QUEUE,
        """            tokens += self._tokens(lane[0])
            if batch and tokens > budget_tokens:
                break
            batch.append(lane.popleft())
""",
        """            item = lane.popleft()
            tokens += self._tokens(item)
            if batch and tokens > budget_tokens:
                break
            batch.append(item)
""",
    ),
    bug(
        "the bulk lane never gets a turn",
        _QUEUE,
        "(credit >= 1 or not self._interactive)",
        "(not self._interactive)",
    ),
)
