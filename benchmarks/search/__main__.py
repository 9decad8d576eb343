"""Worked example of docs/sparse.md, from the built-in model to a search of news.

The script restores a checkpoint from the built-in bundle, trains a sparse encoder on headlines and
paragraphs of Wikinews, exports it and searches the paragraphs of other articles by their headlines.
It writes the results to docs/sparse.md.
"""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks import generated_block
from benchmarks.search.articles import DATA, read
from benchmarks.search.contenders import Found, bm25, compare_int8, sparse_vectors
from fillmask import FillMask
from fillmask.bundles.bundle import default_bundle_path
from fillmask_export.commands import main as export_main
from fillmask_export.restore import main as restore_main
from fillmask_model.commands import main as train_main
from fillmask_model.interruption import StopRequest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "sparse.md"
HEADLINE, SHOWN = "Man convicted of murdering wife 28 years ago", 12  # whose words the page shows


def main() -> None:
    """Run all steps of the worked example."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.search", description=__doc__)
    parser.add_argument(
        "--directory", type=Path, default=ROOT / "runs" / "search", help="directory of files"
    )
    parser.add_argument("--epochs", type=int, default=3, help="passes over the training pairs")
    parser.add_argument(
        "--only-print", action="store_true", help="print the results and leave docs/ unchanged"
    )
    options = parser.parse_args()
    directory: Path = options.directory
    directory.mkdir(parents=True, exist_ok=True)
    with StopRequest() as stop:
        train(directory, options.epochs, stop)
        untrained = export(directory / "start", "untrained", "int8", stop)
        fp32, int8 = (export(directory / "model", "news", one, stop) for one in ("fp32", "int8"))
    pairs = read("test")
    words = bm25(pairs)
    exact, rounded = sparse_vectors(fp32, pairs), sparse_vectors(int8, pairs)
    rows: dict[str, Found] = {
        "BM25, with stop words and stems": words,
        "sparse, built-in model without training": sparse_vectors(untrained, pairs).found,
        "sparse, trained, fp32": exact.found,
        "sparse, trained, int8": rounded.found,
        "sparse int8 and BM25, their scores added": rounded.found.plus(words),
    }
    lines = [
        "| search | MRR@10 | recall@10 | words per headline | words per paragraph |",
        "| --- | --: | --: | --: | --: |",
        *(f"| {name} | {found.row()} |" for name, found in rows.items()),
        "",
        compare_int8(exact, rounded),
        strongest_words(int8),
    ]
    block = "\n".join(lines)
    print(block)
    if not options.only_print:
        generated_block.write(PAGE, "search/__main__", block)


def strongest_words(bundle: Path) -> str:
    """Name the words with the largest weights of a headline that is in none of the files."""
    with FillMask(bundle) as model:
        vector = model.embed_sparse(HEADLINE, input_type="query")
    words = [vector.tokens[place] for place in np.argsort(-vector.values)[:SHOWN]]
    return f"\nThe strongest words of “{HEADLINE}”: {', '.join(words)}."


def train(directory: Path, epochs: int, stop: StopRequest) -> None:
    """Restore the built-in encoder and train it as a sparse encoder."""
    restore_main([str(default_bundle_path()), str(directory / "start")])
    run(
        stop,
        train_main,
        *("sparse", DATA / "train.tsv.xz", "--validation", DATA / "validation.tsv.xz"),
        *("--init", directory / "start", "--output", directory / "model", "--epochs", epochs),
    )


def export(checkpoint: Path, name: str, precision: str, stop: StopRequest) -> Path:
    """Export a checkpoint with the task sparse and return the directory of the bundle."""
    output = checkpoint.with_name(f"{name}-{precision}")
    shutil.rmtree(output, ignore_errors=True)
    run(
        stop,
        export_main,
        *(checkpoint, "--output", output, "--precision", precision, "--name", name),
        *("--task", "sparse"),
    )
    return output


def run(stop: StopRequest, command: Callable[[list[str]], int], *arguments: object) -> None:
    """Run a step of the example."""
    if command([str(argument) for argument in arguments]):
        raise SystemExit(f"the step {arguments[0]} has failed; read its message above")
    if stop():
        raise SystemExit("SIGTERM has stopped the worked example")


if __name__ == "__main__":
    main()
