"""What every request for a task goes through: body, model, memory and disconnect."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeVar

from fastapi import Request, Response

from fillmask.api.models import SERVED, TaskRoute, get_registry
from fillmask.api.request_body import request_of
from fillmask.errors import ContentTypeError, InvalidRequestError, quote
from fillmask.middleware.cancellation import cancel_on_disconnect
from fillmask.middleware.transfer import Claim
from fillmask.models.served_model import ServedModel
from fillmask.observability.request_context import CLAIM, MODEL
from fillmask.parameters.limits import Limits
from fillmask.parameters.texts import TextPair
from fillmask.strict_json import MAX_VALUES
from fillmask.tasks.classify.results import LabelScore
from fillmask.tasks.pipeline import Inputs, Pipeline, Size
from fillmask.tasks.result import accepted
from fillmask.tasks.task import Task

_T = TypeVar("_T")

# Parsing a body of this size takes 0.03 ms, or 0.6 ms for a malicious body. Switching to another
# thread and back takes 0.03 ms.
LONG_BODY_BYTES = 2**14
# memory of one parsed JSON value, which is a short text and the references to the text
_VALUE_BYTES = 70
MAX_RESPONSE_BYTES = 5 * 2**20
# memory contains the JSON twice, as a list of parts and as the joined body
_JSON_COPIES = 2


class Answer(NamedTuple):
    """Results of the texts of a request.

    Attributes:
        is_large: whether serializing takes too long for the event loop.
    """

    results: list[Any]
    is_large: bool


@dataclass(frozen=True, slots=True)
class TaskCall:
    """A request for a task of a model, which is in use until the end of the call."""

    request: Request
    served: ServedModel
    body: bytes
    claim: Claim

    async def read(self, parse: Callable[[bytes, str | None, Limits], _T]) -> _T:
        """Parse the body, on another thread if it is long."""
        arguments = self.body, self.request.headers.get("content-type"), self.served.info.limits
        if len(self.body) < LONG_BODY_BYTES:
            return parse(*arguments)
        return await asyncio.to_thread(parse, *arguments)

    async def plan(self, pipeline: Pipeline[Any, Any, Any], inputs: Inputs[Any]) -> Any:
        """Plan the passes of a task, and claim the memory that they and the response take."""
        planned = await pipeline.plan(inputs)
        self.claim_size(planned.size)
        return planned

    async def run(self, task: Task, inputs: Inputs[Any]) -> Answer:
        """Run a task, once its memory is claimed."""
        pipeline = self.served.pipeline(task)
        planned = await self.plan(pipeline, inputs)
        return Answer(await pipeline.run(planned), planned.is_large)

    async def rerank(
        self, body: Any, label: str, check_tokens: Callable[[int], object] = int
    ) -> tuple[list[list[LabelScore]], int]:
        """Return the only label of the query with each text, and the tokens of all pairs.

        Args:
            body: a query and its texts, with the parameters of the task classify.
        """
        pipeline = self.served.require_reranking()
        pairs = [TextPair(body.query, text) for text in body.texts]
        planned = await self.plan(pipeline, Inputs(pairs, [body] * len(pairs), label))
        tokens = [len(one.input_ids) for one in planned.encoded]
        check_tokens(max(tokens))
        return accepted(await pipeline.run(planned)), sum(tokens)

    def claim_size(self, size: Size) -> None:
        """Claim the memory of a response.

        Raises:
            InvalidRequestError: the response can exceed MAX_RESPONSE_BYTES as JSON.
        """
        if size.json_bytes > MAX_RESPONSE_BYTES:
            raise InvalidRequestError(
                f"The response could have {size.json_bytes} bytes; the limit is "
                f"{MAX_RESPONSE_BYTES}. {size.advice}"
            )
        self.claim.add(size.work_bytes + _JSON_COPIES * size.json_bytes)

    def claim_repeated(self, repeats: bool) -> None:  # noqa: FBT001 - a field of the request
        """Claim the memory of a response that may repeat the texts of the body, in two copies."""
        if repeats:
            self.claim.add(2 * len(self.body))

    def check_named(self, field: str, name: str | None) -> None:
        """Check that a field of the body names no other model than the path."""
        allowed = get_registry(self.request.app).names_of(self.served)
        if name is not None and name not in allowed:
            raise InvalidRequestError(
                f"{field} must be null or a name of the model in the path, "
                f"{' or '.join(map(quote, allowed))} (got {quote(name)})."
            )

    @contextmanager
    def of_model(self, name: str | None) -> Iterator["TaskCall"]:
        """Use the model that the body names within the `with` block. None keeps the model."""
        if "name" in self.request.path_params:
            self.check_named("model", name)
            name = None
        if name is None:
            yield self
            return
        route: TaskRoute = self.request.scope["route"]
        served = route.find_model(self.request.app, name)
        self.request.scope[MODEL] = served.info.name
        with served.in_use:
            yield replace(self, served=served)


def endpoint_of(
    answer: Callable[[TaskCall], Awaitable[Response]],
) -> Callable[[Request], Awaitable[Response]]:
    """Return the endpoint of a TaskRoute from a function that answers a call.

    The client's disconnect cancels the function. The endpoint raises a FillMaskError if the body is
    too large or encoded.
    """

    async def endpoint(request: Request) -> Response:
        _check_encoding(request)
        body = await request.body()
        claim: Claim = request.scope[CLAIM]
        claim.add(_parsed_bytes(body))
        with cancel_on_disconnect(request.receive):
            return await answer(TaskCall(request, request.scope[SERVED], body, claim))

    return endpoint


async def serve(task: Task, call: TaskCall) -> Response:
    """Answer a call for a task in our own format."""
    body = await call.read(request_of(task).read)
    results, large = await call.run(task, body.asked())
    return await json_response(lambda: task.response(results, single=body.single), large=large)


async def json_response(write: Callable[[], bytes], *, large: bool = False) -> Response:
    """Return the response with the JSON of a result, written on another thread if it is large."""
    content = await asyncio.to_thread(write) if large else write()
    return Response(content, media_type="application/json")


def _check_encoding(request: Request) -> None:
    encoding = request.headers.get("content-encoding", "")
    if encoding.strip().lower() not in {"", "identity"}:
        raise ContentTypeError(
            f"The service does not support the content encoding {quote(encoding)}; send plain JSON."
        )


def _parsed_bytes(body: bytes) -> int:
    """Return the maximum bytes of a parsed body, whose texts may take four bytes per character."""
    wide = not body.isascii() or rb"\u" in body
    return len(body) * (4 if wide else 1) + _VALUE_BYTES * min(body.count(b","), MAX_VALUES)
