"""create_app: all the wiring, from the settings to an application that is ready."""

import asyncio
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import partial

from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Receive, Scope, Send

from service import __version__
from service.batcher import Batcher
from service.body import Limits
from service.body_limit import BodyLimit
from service.bundle import Bundle, read_bundle
from service.caller import CallerLeftError
from service.docs_page import add_docs_page
from service.errors import FillMaskError, SettingsError
from service.fill_mask import FillMask
from service.fill_mask_endpoint import FillMaskEndpoint
from service.golden import replay
from service.health import Health
from service.playground_page import add_playground_page
from service.protocols.routes import create_protocol_router
from service.request_id import RequestId
from service.routes import FILL_MASK_PATH, MODEL_PATH, ROOT_PATH, create_router
from service.runtime import Runtime
from service.schemas import InfoBody
from service.scoring import Scoring
from service.served import Served
from service.settings import Settings
from service.tokenizer import Tokenizer
from service.warm_up import warm_up

LONG_WORK_THREADS = 2


class Service(FastAPI):
    """FastAPI, past which the requests that count go straight to their endpoint.

    FastAPI's own way there and back costs 35 us of CPU; all that is done here with a short text,
    tokenizing included, costs 45.

    Attributes:
        fill_mask: answers the POST requests that ask for fills, once the model is loaded.
        fill_mask_paths: where they come to.
    """

    fill_mask: ASGIApp | None = None
    fill_mask_paths: frozenset[str] = frozenset()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one connection."""
        if (
            scope["type"] == "http"
            and scope["path"] in self.fill_mask_paths
            and scope["method"] == "POST"
            and self.fill_mask is not None
        ):
            await self.fill_mask(scope, receive, send)
        else:
            await super().__call__(scope, receive, send)


def create_app(settings: Settings) -> Service:
    """The service; its lifespan loads and verifies the model, and drains it at the end.

    `app.state.health` tells whether it can answer; end it to have it say that it stops.

    Raises:
        StartError: when the lifespan begins, and the bundle or a setting is no good.
    """
    health = Health()

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        # for what would stall the event loop; it is rare, and each thread keeps memory of its own
        asyncio.get_running_loop().set_default_executor(
            ThreadPoolExecutor(LONG_WORK_THREADS, thread_name_prefix="fillmask-long-work")
        )
        bundle = read_bundle(settings.bundle)
        limits = _limits(settings, bundle)
        # One thread a run and as many runs as threads gives the most throughput. Loading takes the
        # most memory at once, so nothing that can wait is there yet.
        runtime = Runtime(bundle.model_path, threads_per_run=1)
        tokenizer = Tokenizer.of(bundle)
        warm_up(
            runtime.run,
            token_id=bundle.mask_token_id,
            max_tokens=bundle.max_tokens,
            max_batch_tokens=settings.max_batch_tokens,
            max_masks=settings.max_masks,
            top_k=limits.max_top_k,
        )
        batcher = Batcher(
            runtime.run,
            workers=settings.threads,
            max_batch_tokens=settings.max_batch_tokens,
            max_waiting_tokens=settings.max_waiting_tokens,
            max_patient_tokens=settings.max_patient_tokens,
            on_failure=health.end,
        )
        fills = partial(
            FillMask,
            tokenizer,
            batcher,
            max_tokens=bundle.max_tokens,
            vocab_size=bundle.architecture.vocab_size,
        )
        try:
            # not the users' limits: a golden prompt may have more masks than they may send
            await replay(bundle, fills(max_masks=bundle.max_tokens, max_passes=1))
            fill_mask = fills(max_masks=settings.max_masks, max_passes=settings.max_passes)
            endpoint = FillMaskEndpoint(fill_mask, limits)
            service.fill_mask = RequestId(BodyLimit(endpoint, settings.max_body_bytes))
            service.fill_mask_paths = frozenset(
                {FILL_MASK_PATH, ROOT_PATH, MODEL_PATH.format(name=bundle.name)}
            )
            scoring = Scoring(tokenizer, batcher, bundle.max_tokens, settings.max_passes)
            service.state.served = Served(fill_mask, scoring, _info(settings, bundle, limits))
            health.ready()
            yield
        finally:
            health.end("The service is shutting down.")
            await batcher.close()

    service = Service(
        title="fillmask",
        description="Fills the masks of a text with the words a language model finds likely.",
        version=__version__,
        lifespan=lifespan,
        redirect_slashes=False,
        # their pages load scripts from elsewhere; docs_page has its own
        docs_url=None,
        redoc_url=None,
    )
    service.state.health = health
    service.include_router(create_router(health, settings.max_texts, settings.max_top_k))
    service.include_router(create_protocol_router())
    add_docs_page(service)
    add_playground_page(service)
    service.add_middleware(BodyLimit, max_body_bytes=settings.max_body_bytes)
    service.add_middleware(RequestId)
    service.add_exception_handler(FillMaskError, _answer_error)
    service.add_exception_handler(CallerLeftError, _answer_nobody)
    service.add_exception_handler(HTTPException, _answer_http_exception)
    return service


def _limits(settings: Settings, bundle: Bundle) -> Limits:
    if settings.max_waiting_tokens < bundle.max_tokens:
        raise SettingsError(
            f"max_waiting_tokens is {settings.max_waiting_tokens}, and one text of this bundle may "
            f"have {bundle.max_tokens} tokens; allowed is a whole number that is not below."
        )
    ordinary_tokens = bundle.architecture.vocab_size - len(bundle.special_token_ids)
    return Limits(
        max_tokens=bundle.max_tokens,
        max_texts=settings.max_texts,
        max_masks=settings.max_masks,
        max_top_k=min(settings.max_top_k, ordinary_tokens),
        max_passes=settings.max_passes,
        max_body_bytes=settings.max_body_bytes,
    )


def _info(settings: Settings, bundle: Bundle, limits: Limits) -> InfoBody:
    return InfoBody(
        name=bundle.name,
        license=bundle.license,
        description=bundle.description,
        mask_token=bundle.mask_token,
        limits=limits,
        precision=bundle.precision,
        architecture=bundle.architecture,
        version=__version__,
        threads=settings.threads,
    )


async def _answer_error(_request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, FillMaskError)  # noqa: S101 - what it is registered for
    return JSONResponse({"error": error.text}, error.status)


async def _answer_nobody(_request: Request, _error: Exception) -> Response:
    return Response(status_code=499)  # what nginx logs for it; the connection has ended


async def _answer_http_exception(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)  # noqa: S101 - what it is registered for
    sentence = f"{error.detail}."
    if error.status_code == 404:
        sentence = "There is nothing at this path; POST /fill-mask fills masks, /docs says more."
    elif error.status_code == 405 and error.headers:
        allowed = error.headers["Allow"]
        sentence = f"The method {request.method[:20]} is not allowed here; allowed is {allowed}."
    return JSONResponse({"error": sentence}, error.status_code, error.headers)
