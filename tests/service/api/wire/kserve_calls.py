"""Calls of KServe's client for test_kserve_client.py.

The command `python kserve_calls.py URL MODEL TEXT...` runs in the environment of the client and
prints the results as JSON.
"""

import asyncio
import json
import sys
from collections.abc import Awaitable, Sequence
from typing import Any

import httpx
import numpy as np
from kserve import InferenceRESTClient, InferInput, InferRequest, RESTConfig

OTHER = "other"


async def error_of(call: Awaitable[Any]) -> str:
    """Return the message of the error that a call raises."""
    try:
        await call
    except httpx.HTTPStatusError as error:
        return str(error)
    raise AssertionError


async def call_v1(url: str, model: str, texts: Sequence[str]) -> dict[str, Any]:
    """Call the methods of the client for V1."""
    body = {"instances": texts, "parameters": {"top_k": 3}}
    async with InferenceRESTClient(RESTConfig(protocol="v1")) as client:
        return {
            "live": await client.is_server_live(url),
            "ready": await client.is_model_ready(url, model),
            "response": await client.infer(url, body, model_name=model),
            "no mask": await error_of(client.infer(url, {"instances": ["a"]}, model_name=model)),
            "other": await error_of(client.is_model_ready(url, OTHER)),
        }


async def call_v2(url: str, model: str, texts: Sequence[str], *, binary: bool) -> dict[str, Any]:
    """Call the methods of the client for V2, with tensors in binary or in JSON."""
    headers: dict[str, str] = {}
    async with InferenceRESTClient(RESTConfig(protocol="v2")) as client:

        async def infer(name: str | None, values: Sequence[str]) -> Any:
            array = np.array(values, dtype=np.object_)
            tensor = InferInput("text", list(array.shape), "BYTES")
            tensor.set_data_from_numpy(array, binary_data=binary)
            parameters = {"top_k": 3, "binary_data_output": binary}
            request = InferRequest(name, [tensor], request_id="seven", parameters=parameters)
            return await client.infer(
                url, request, model_name=model, response_headers=headers, timeout=20
            )

        return {
            "live": await client.is_server_live(url),
            "server ready": await client.is_server_ready(url),
            "ready": await client.is_model_ready(url, model),
            "other ready": await client.is_model_ready(url, OTHER),
            "response": (await infer(model, texts)).to_dict(),
            "unnamed": (await infer(None, texts)).to_dict(),
            "content type": headers["content-type"],
            "no mask": await error_of(infer(model, ["a"])),
            "other": await error_of(infer(OTHER, texts)),
        }


async def call(url: str, model: str, *texts: str) -> dict[str, Any]:
    """Call the methods of the client for both protocols."""
    return {
        "v1": await call_v1(url, model, texts),
        "v2 in JSON": await call_v2(url, model, texts, binary=False),
        "v2 in binary": await call_v2(url, model, texts, binary=True),
    }


if __name__ == "__main__":
    print(json.dumps(asyncio.run(call(*sys.argv[1:]))))  # noqa: T201 - the test reads the output
