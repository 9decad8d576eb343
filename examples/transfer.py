"""Transfer against training from scratch, as docs/classification.md shows it.

    make classification
    .venv-dev/bin/python examples/transfer.py --sizes 20 --epochs 1 --seeds 1    # a quick look

Is a paragraph from an encyclopedia, news, literature, or a page about health or government? The
script fine-tunes the built-in encoder on few and on many labelled paragraphs, trains the same
encoder from random weights, and compares both with a bag of words. Then it exports a classifier and
counts its correct labels in fp32 and int8. It prints a table and draws comparison.png.
"""

from __future__ import annotations

import argparse
import json
import lzma
import shutil
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy.stats import t
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from fillmask import FillMask
from fillmask.bundles.bundle import default_bundle_path
from fillmask_export.commands import main as fillmask_export
from fillmask_export.restore import main as restore
from fillmask_model.commands import main as fillmask_train
from fillmask_model.interruption import StopRequest

DATA = Path(__file__).parent / "data" / "paragraphs"
BASELINES = ("majority class", "bag of words")
METHODS = (*BASELINES, "from scratch", "pre-trained")
COLOURS = dict(zip(METHODS, ("0.6", "tab:green", "tab:orange", "tab:blue"), strict=True))
EXAMPLE = "Your doctor may order a blood test."

Row = tuple[str, str]  # text, label
# accuracy on the test paragraphs after each epoch, of each seed, by method and training rows
Results = dict[tuple[str, int], list[list[float]]]


def main() -> None:
    """Run all steps. The same command continues an interrupted comparison."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--directory", type=Path, default=Path("runs/classification"))
    parser.add_argument("--sizes", type=int, nargs="+", default=[200, 1000, 5000])
    parser.add_argument("--epochs", type=int, nargs="+", default=[10, 5, 3], help="by size")
    parser.add_argument("--seeds", type=int, default=3, help="runs of each size")
    options = parser.parse_args()
    directory: Path = options.directory
    directory.mkdir(parents=True, exist_ok=True)
    restore([str(default_bundle_path()), str(directory / "start")])
    training, test = read("train"), read("test")
    results: Results = {}
    with StopRequest() as stop:
        epochs_of = dict(zip(options.sizes, options.epochs, strict=True))
        for size, seed, method in product(options.sizes, range(options.seeds), METHODS):
            rows = [training[row] for row in stratified_order(training, seed)[:size]]
            name = f"{method.replace(' ', '_')}-{size}-{seed}"
            if method in BASELINES:
                accuracies = [evaluate_baseline(method, rows, test)]
            else:
                accuracies = train(directory, name, rows, epochs_of[size], seed, stop)
            results.setdefault((method, size), []).append(accuracies)
        print(table(results))
        draw(directory / "comparison.png", results)
        export(directory, training[: options.sizes[-1]], options.epochs[-1], stop)
    correct = [label for _, label in test]
    fp32, int8 = (best_labels(directory / precision, test) for precision in ("fp32", "int8"))
    for name, found, wanted in (
        ("correct labels in fp32", fp32, correct),
        ("correct labels in int8", int8, correct),
        ("same label in int8 as in fp32", int8, fp32),
    ):
        print(f"{name}: {100 * np.mean(np.array(found) == wanted):.1f} % of {len(test):,}")
    style = make_pipeline(
        FunctionTransformer(style_features), StandardScaler(), LogisticRegression()
    )
    print(f"accuracy by lengths and punctuation alone: {fit(style, training, test):.3f}")
    with FillMask(directory / "int8") as model:
        print(EXAMPLE, [(one.label, round(one.score, 4)) for one in model.classify(EXAMPLE)])


def read(name: str) -> list[Row]:
    with lzma.open(DATA / f"{name}.tsv.xz", "rt", encoding="utf-8") as stream:
        rows = [line.rstrip("\n").split("\t") for line in stream]
    return [(text, label) for text, label, _document in rows[1:]]


def stratified_order(rows: Sequence[Row], seed: int) -> NDArray[np.int64]:
    """Return a random order in which the first n rows have about the labels' shares, for each n."""
    generator = np.random.default_rng(seed)
    labels = np.array([label for _, label in rows])
    place = np.empty(len(rows))
    for label in np.unique(labels):
        own = generator.permutation(np.flatnonzero(labels == label))
        # evenly spaced places in (0, 1), with one random shift per label
        place[own] = (np.arange(len(own)) + generator.random()) / len(own)
    return np.argsort(place, kind="stable")


def evaluate_baseline(method: str, training: Sequence[Row], test: Sequence[Row]) -> float:
    """Return the accuracy of the most frequent label or of a bag of words."""
    if method == "majority class":
        [(majority, _)] = Counter(label for _, label in training).most_common(1)
        return float(np.mean([label == majority for _, label in test]))
    model = make_pipeline(
        TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True),
        LogisticRegression(C=10, max_iter=1000),  # with C=100, it's at most 0.01 better
    )
    return fit(model, training, test)


def fit(model: Pipeline, training: Sequence[Row], test: Sequence[Row]) -> float:
    """Return the accuracy of a model of scikit-learn."""
    texts, labels = zip(*training, strict=True)
    test_texts, correct = zip(*test, strict=True)
    return float(model.fit(texts, labels).score(test_texts, correct))


def style_features(texts: Sequence[str]) -> NDArray[np.float64]:
    """Return lengths and counts of punctuation marks, all that a style without words says."""
    rows = []
    for text in texts:
        lengths = [len(word) for word in text.split()]
        counts = [text.count(mark) for mark in ".,'-"]
        rows.append([len(text), len(lengths), np.mean(lengths), np.std(lengths), *counts])
    return np.array(rows, np.float64)


def run(command: Callable[[list[str]], int], *arguments: object, stop: StopRequest) -> None:
    """Run a step as its command line would."""
    if command([str(argument) for argument in arguments]):
        raise SystemExit(f"the step {arguments[0]} has failed; read its message above")
    if stop():
        raise SystemExit("SIGTERM has stopped the example. The same command continues it.")


def write_rows(path: Path, rows: Sequence[Row]) -> Path:
    lines = ("\t".join(row) + "\n" for row in [("text", "label"), *rows])
    path.write_text("".join(lines), encoding="utf-8")
    return path


def train(
    directory: Path, name: str, rows: Sequence[Row], epochs: int, seed: int, stop: StopRequest
) -> list[float]:
    """Return the accuracy on the test paragraphs after each epoch, from a file if it has all."""
    kept, output = directory / f"{name}.json", directory / "run"
    if kept.is_file() and len(accuracies := json.loads(kept.read_text())) == epochs:
        return list(accuracies)
    scratch = ["--from-scratch"] if name.startswith("from_scratch") else []
    run(
        fillmask_train,
        *("classify", write_rows(directory / "run.tsv", rows), *scratch),
        *("--validation", DATA / "test.tsv.xz", "--on-long-text", "truncate"),
        *("--init", directory / "start", "--output", output),
        *("--epochs", epochs, "--seed", seed),
        stop=stop,
    )
    history = (output / "history.jsonl").read_text(encoding="utf-8").splitlines()
    accuracies = [json.loads(line)["validation_accuracy"] for line in history]
    kept.write_text(json.dumps(accuracies))
    return accuracies


def half_width(accuracies: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return half the width of the 95 % interval of the mean over the first axis, the seeds."""
    seeds = len(accuracies)
    if seeds == 1:
        return np.zeros(accuracies.shape[1:])
    error = accuracies.std(axis=0, ddof=1) / np.sqrt(seeds)
    width: NDArray[np.float64] = error * t.ppf(0.975, seeds - 1)
    return width


def table(results: Results) -> str:
    """Return the accuracies after the last epoch, as means over the seeds with their intervals."""
    lines = [f"| training rows | {' | '.join(METHODS)} |", "| ---: | --- | --- | --- | --- |"]
    for size in sorted({size for _, size in results}):
        cells = []
        for method in METHODS:
            last = np.array([accuracies[-1] for accuracies in results[method, size]])
            mean, half = last.mean(), half_width(last)
            cells.append(f"{mean:.3f} ({mean - half:.3f} to {mean + half:.3f})")
        lines.append(f"| {size:,} | {' | '.join(cells)} |")
    return "\n".join(lines)


def draw(path: Path, results: Results) -> None:
    """Plot the accuracies by epoch, with a panel per number of rows and bands for the intervals."""
    sizes = sorted({size for _, size in results})
    figure = Figure(figsize=(3.6 * len(sizes) + 1, 3.8), layout="constrained")
    panels = figure.subplots(1, len(sizes), sharey=True, squeeze=False)[0]
    for axes, size in zip(panels, sizes, strict=True):
        for method in METHODS:
            accuracies = np.array(results[method, size])
            mean, colour = accuracies.mean(axis=0), COLOURS[method]
            if method in BASELINES:
                axes.axhline(mean[0], color=colour, linestyle="--", label=method)
                continue
            epochs, half = np.arange(1, len(mean) + 1), half_width(accuracies)
            axes.plot(epochs, mean, color=colour, marker=".", label=method)
            low, high = np.clip(mean - half, 0, 1), np.clip(mean + half, 0, 1)
            axes.fill_between(epochs, low, high, color=colour, alpha=0.2, linewidth=0)
        axes.set(title=f"{size:,} training rows", xlabel="epoch")
        axes.xaxis.get_major_locator().set_params(integer=True)
        axes.grid(alpha=0.3)
    panels[0].set_ylabel("accuracy")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    figure.savefig(path, dpi=120)


def export(directory: Path, rows: Sequence[Row], epochs: int, stop: StopRequest) -> None:
    """Train a classifier with validation paragraphs, and export it in fp32 and in int8."""
    run(
        fillmask_train,
        *("classify", write_rows(directory / "train.tsv", rows), "--init", directory / "start"),
        *("--validation", DATA / "validation.tsv.xz", "--test", DATA / "test.tsv.xz"),
        *("--output", directory / "model", "--epochs", epochs),
        stop=stop,
    )
    texts = {"verify": read("validation"), "calibrate": rows}
    for name, some in texts.items():
        lines = "".join(f"{text}\n" for text, _ in some[:200])
        (directory / f"{name}.txt").write_text(lines, encoding="utf-8")
    for precision in ("fp32", "int8"):
        output = directory / precision
        shutil.rmtree(output, ignore_errors=True)
        run(
            fillmask_export,
            *(directory / "model", "--output", output, "--precision", precision),
            *("--name", "sources", "--texts", directory / "verify.txt"),
            *("--calibrate", directory / "calibrate.txt"),
            stop=stop,
        )


def best_labels(bundle: Path, rows: Sequence[Row]) -> list[str]:
    with FillMask(bundle) as model:
        return [best.label for [best] in model.classify([text for text, _ in rows], top_k=1)]


if __name__ == "__main__":
    main()
