"""Worked example of docs/classification.md, from the built-in model to an int8 bundle.

The script restores a checkpoint from the built-in bundle. It compares fine-tuning with training
from scratch on the labelled paragraphs. It then trains, exports and evaluates a classifier. It
writes the results to docs/classification.md.
"""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks import generated_block
from benchmarks.classification.bundle_accuracy import evaluate_bundles, example_response
from benchmarks.classification.paragraphs import DATA, HEADER, Example, read
from benchmarks.classification.style import style_accuracy
from fillmask.bundles.bundle import default_bundle_path
from fillmask_export.commands import main as export_main
from fillmask_export.restore import main as restore_main
from fillmask_model.commands import main as train_main
from fillmask_model.interruption import StopRequest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "classification.md"
PICTURE = ROOT / "docs" / "classification.png"
PICTURE_TEXT = "accuracy by epoch of the pre-trained encoder and of the same encoder from scratch"
NAME, RESPONSE_NAME = "classification/__main__", "classification/bundle_accuracy"
SIZES, EPOCHS, SEEDS = (200, 1000, 5000), (10, 5, 3), 3
PRECISIONS = ("fp32", "int8")


def main() -> None:
    """Run all steps of the worked example."""
    options = _parser().parse_args()
    with StopRequest() as stop:
        _run_example(options, stop)


def _run_example(options: argparse.Namespace, stop: StopRequest) -> None:
    directory: Path = options.directory
    directory.mkdir(parents=True, exist_ok=True)
    start = directory / "start"
    restore_main([str(default_bundle_path()), str(start)])
    comparison = _compare(directory, start, options, stop)
    _train(directory, start, options, stop)
    fp32, int8 = (_export(directory, precision, stop) for precision in PRECISIONS)
    examples = {file: read(file) for file in ("train", "test")}
    accuracy = evaluate_bundles(fp32, int8, examples["test"])
    style = style_accuracy(examples["train"], examples["test"])
    block = "\n".join(
        [
            (comparison / "table.md").read_text(encoding="utf-8"),
            *(f"- {sentence}" for sentence in [*accuracy.sentences(), style]),
            f"\n![{PICTURE_TEXT}]({PICTURE.name})",
        ]
    )
    response = example_response(int8)
    print(block, response, sep="\n")
    if not options.only_print:
        generated_block.write(PAGE, NAME, block)
        generated_block.write(PAGE, RESPONSE_NAME, f"```json\n{response}\n```")
        shutil.copy(comparison / "comparison.png", PICTURE)


def _compare(directory: Path, start: Path, options: argparse.Namespace, stop: StopRequest) -> Path:
    """Return the directory with a comparison of fine-tuning and training from scratch."""
    output = directory / "comparison"
    _run(
        stop,
        train_main,
        *("compare", DATA / "train.tsv.xz", "--validation", DATA / "test.tsv.xz"),
        *("--init", start, "--output", output, "--baselines"),
        *("--sizes", *options.sizes, "--epochs-by-size", *options.epochs),
        *("--seeds", options.seeds),
    )
    return output


def _train(directory: Path, start: Path, options: argparse.Namespace, stop: StopRequest) -> None:
    """Train the exported classifier on the largest number of rows in the comparison."""
    rows = read("train")[: max(options.sizes)]
    training = directory / "train.tsv"
    _write_rows(training, rows)
    _run(
        stop,
        train_main,
        *("classify", training, "--validation", DATA / "validation.tsv.xz"),
        *("--test", DATA / "test.tsv.xz", "--init", start, "--output", directory / "model"),
        *("--epochs", options.epochs[-1]),
    )
    # texts for the verification and the rounding of the export
    for file, examples in {"verify": read("validation"), "calibrate": rows}.items():
        texts = [example.text for example in examples[:200]]
        (directory / f"{file}.txt").write_text("\n".join(texts) + "\n", encoding="utf-8")


def _export(directory: Path, precision: str, stop: StopRequest) -> Path:
    """Export the classifier and return the directory of the bundle."""
    output = directory / f"sources-{precision}"
    shutil.rmtree(output, ignore_errors=True)
    _run(
        stop,
        export_main,
        *(directory / "model", "--output", output, "--precision", precision),
        *("--name", "sources", "--texts", directory / "verify.txt"),
        *("--calibrate", directory / "calibrate.txt"),
    )
    return output


def _write_rows(path: Path, rows: Sequence[Example]) -> None:
    lines = ("\t".join(row) + "\n" for row in [HEADER, *rows])
    path.write_text("".join(lines), encoding="utf-8")


def _run(stop: StopRequest, command: Callable[[list[str]], int], *arguments: object) -> None:
    if command([str(argument) for argument in arguments]):
        raise SystemExit(f"the step {arguments[0]} has failed; read its message above")
    if stop():
        raise SystemExit("SIGTERM has stopped the worked example. The same command continues it.")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.classification", description=__doc__
    )
    parser.add_argument(
        "--directory",
        type=Path,
        default=ROOT / "runs" / "classification",
        help="directory of files",
    )
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="training rows")
    parser.add_argument("--epochs", type=int, nargs="+", default=EPOCHS, help="epochs by size")
    parser.add_argument("--seeds", type=int, default=SEEDS, help="number of runs per size")
    parser.add_argument(
        "--only-print", action="store_true", help="print the results and leave docs/ unchanged"
    )
    return parser


if __name__ == "__main__":
    main()
