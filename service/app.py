"""create_app: all the wiring, from the settings to an application that is ready."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from service import __version__
from service.batcher import Batcher
from service.body_limit import BodyLimit
from service.bundle import Bundle, read_bundle
from service.docs_page import add_docs_page
from service.errors import FillMaskError, OverloadedError, SettingsError
from service.fill_mask import FillMask
from service.golden import replay
from service.health import Health
from service.request_id import RequestId
from service.routes import Served, create_router
from service.runtime import Runtime
from service.schemas import InfoBody, Limits
from service.settings import Settings
from service.tokenizer import Tokenizer
from service.warm_up import warm_up


def create_app(settings: Settings) -> FastAPI:
    """The service; its lifespan loads and verifies the model, and drains it at the end.

    `app.state.health` tells whether it can answer; end it to have it say that it stops.

    Raises:
        StartError: when the lifespan begins, and the bundle or a setting is no good.
    """
    health = Health()

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        bundle = read_bundle(settings.bundle)
        limits = _limits(settings, bundle)
        tokenizer = Tokenizer(
            bundle.tokenizer_path.read_bytes(),
            bundle.mask_token,
            bundle.mask_token_id,
            bundle.special_token_ids,
        )
        # one thread a run and as many runs as threads gives the most throughput
        runtime = Runtime(bundle.model_path, threads_per_run=1)
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
            on_failure=health.end,
        )
        try:
            # not the users' limits: a golden prompt may have more masks than they may send
            golden = FillMask(tokenizer, batcher, bundle.max_tokens, max_masks=bundle.max_tokens)
            await replay(bundle, golden)
            app.state.served = Served(
                fill_mask=FillMask(tokenizer, batcher, bundle.max_tokens, settings.max_masks),
                limits=limits,
                info=_info(settings, bundle, limits),
            )
            health.ready()
            yield
        finally:
            health.end("The service is shutting down.")
            await batcher.close()

    app = FastAPI(
        title="fillmask",
        description="Fills the masks of a text with the words a language model finds likely.",
        version=__version__,
        lifespan=lifespan,
        redirect_slashes=False,
        # their pages load scripts from elsewhere; docs_page has its own
        docs_url=None,
        redoc_url=None,
    )
    app.state.health = health
    app.include_router(create_router(health, settings.max_texts, settings.max_top_k))
    add_docs_page(app)
    app.add_middleware(BodyLimit, max_body_bytes=settings.max_body_bytes)
    app.add_middleware(RequestId)
    app.add_exception_handler(FillMaskError, _answer_error)
    app.add_exception_handler(HTTPException, _answer_http_exception)
    return app


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
    headers = {}
    if isinstance(error, OverloadedError):
        headers["Retry-After"] = str(error.retry_after_s)
    return JSONResponse({"error": error.text}, error.status, headers)


async def _answer_http_exception(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)  # noqa: S101 - what it is registered for
    sentence = f"{error.detail}."
    if error.status_code == 404:
        sentence = "There is nothing at this path; POST /fill-mask fills masks, /docs says more."
    elif error.status_code == 405 and error.headers:
        allowed = error.headers["Allow"]
        sentence = f"The method {request.method[:20]} is not allowed here; allowed is {allowed}."
    return JSONResponse({"error": sentence}, error.status_code, error.headers)
