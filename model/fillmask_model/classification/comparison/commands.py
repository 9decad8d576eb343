"""Command for comparing fine-tuning with training from scratch."""

from __future__ import annotations

import argparse
import dataclasses
from itertools import product
from pathlib import Path

from fillmask_model.classification.comparison.plot import draw_comparison
from fillmask_model.classification.comparison.results import (
    Method,
    RunResult,
    format_table,
    summarise,
)
from fillmask_model.classification.comparison.runs import (
    KEY_NAME,
    RUNS_NAME,
    Comparison,
    ComparisonData,
    check_key,
    is_own_comparison,
)
from fillmask_model.classification.config import ClassifyConfig
from fillmask_model.classification.data.labels import encode_targets, label_names
from fillmask_model.classification.options import (
    add_data_options,
    add_training_options,
    columns_of,
    read_training_data,
)
from fillmask_model.classification.prediction import LabelledTexts
from fillmask_model.classification.report import write_json
from fillmask_model.classification.start import Start
from fillmask_model.encoder.classifier import ClassifierConfig, ProblemType
from fillmask_model.files import sha256_of
from fillmask_model.fine_tuning.config import max_tokens_of
from fillmask_model.fine_tuning.tables import Dataset
from fillmask_model.fine_tuning.tokens import describe_truncated_texts, tokenize
from fillmask_model.interruption import StopRequest
from fillmask_model.memory import keep_freed_memory, limit_kernel_cache
from fillmask_model.output_files import reject_foreign_files, reject_inputs

RESULTS_NAME = "results.json"
PLOT_NAME = "comparison.png"
TABLE_NAME = "table.md"
_PROBLEM_TYPE: ProblemType = "single_label_classification"
_BASELINES: tuple[Method, ...] = ("majority", "bag_of_words")


def add_compare_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `compare` to the command line."""
    parser = commands.add_parser("compare", help=compare_command.__doc__)
    parser.set_defaults(command=compare_command)
    add_data_options(parser)
    parser.add_argument("--output", required=True, type=Path, help="directory for the results")
    parser.add_argument("--init", required=True, type=Path, help="checkpoint of the encoder")
    sizes_help = "numbers of training rows (default: 200 1000 5000)"
    parser.add_argument("--sizes", type=int, nargs="+", default=[200, 1000, 5000], help=sizes_help)
    seeds_help = "number of runs with different seeds and training rows (default: %(default)s)"
    parser.add_argument("--seeds", type=int, default=3, help=seeds_help)
    parser.add_argument(
        "--baselines",
        action="store_true",
        help="also evaluate the majority class and a bag of words",
    )
    parser.add_argument(
        "--epochs-by-size",
        type=int,
        nargs="+",
        help="number of epochs for each of --sizes, in the same order (default: --epochs)",
    )
    parser.add_argument(
        "--scratch-learning-rate",
        type=float,
        help="peak learning rate of training from scratch (default: --learning-rate)",
    )
    add_training_options(parser)


def compare_command(options: argparse.Namespace) -> None:
    """Compare fine-tuning of a checkpoint with training of the same encoder from scratch."""
    keep_freed_memory()
    limit_kernel_cache()
    config = ClassifyConfig.from_options(options)
    _check_output(options)
    scratch_rate = options.scratch_learning_rate or config.learning_rate
    training, validation, notes = read_training_data(options, _PROBLEM_TYPE)
    for note in notes:
        print(note, flush=True)
    _check_sizes(options, training)
    epochs = _epochs_by_size(options)
    labels = label_names(training, columns_of(options), _PROBLEM_TYPE)
    classifier = ClassifierConfig(labels=labels, pooling=options.pooling, activation=None)
    start = Start.from_checkpoint(options.init)
    max_tokens = max_tokens_of(options, start.config.max_positions)

    def prepare(dataset: Dataset) -> LabelledTexts:
        texts = tokenize(
            dataset,
            start.tokenizer,
            max_tokens=max_tokens,
            type_vocab_size=start.config.type_vocab_size,
            on_long_text="truncate",
        )
        for note in describe_truncated_texts(dataset, texts):
            print(note, flush=True)
        return LabelledTexts(texts, encode_targets(dataset, labels, _PROBLEM_TYPE))

    data = ComparisonData(training, validation, prepare(training), prepare(validation))
    inputs = {
        "data": sha256_of([options.data]),
        "validation": sha256_of([options.validation]) if options.validation else None,
        "validation_share": options.validation_share,
        "columns": dataclasses.asdict(columns_of(options)),
        "checkpoint": sha256_of(sorted(p for p in options.init.iterdir() if p.is_file())),
        "max_tokens": max_tokens,
        "pooling": options.pooling,
        "training": dataclasses.asdict(config),
        "scratch_learning_rate": scratch_rate,
    }
    check_key(options.output, inputs)
    starts: dict[Method, tuple[Start, ClassifyConfig]] = {
        "pretrained": (start, config),
        "from_scratch": (
            start.without_weights(),
            dataclasses.replace(config, learning_rate=scratch_rate),
        ),
    }
    comparison = Comparison(data, starts, epochs, classifier, options.output, options.device)
    methods: tuple[Method, ...] = (*(_BASELINES if options.baselines else ()), *starts)
    seeds = range(config.seed, config.seed + options.seeds)
    results: list[RunResult] = []
    with StopRequest() as stop:
        for size, seed, method in product(sorted(set(options.sizes)), seeds, methods):
            result = comparison.run(method, size, seed, stop)
            if result is None:
                print(
                    "SIGTERM has stopped the comparison. The same command continues it.", flush=True
                )
                return
            results.append(result)
    write_json(
        options.output / RESULTS_NAME,
        {
            "labels": labels,
            "training_rows": len(training.examples),
            "validation_rows": len(validation.examples),
            "inputs": inputs,
            "summary": summarise(results),
            "runs": [result.to_dict() for result in results],
        },
    )
    draw_comparison(options.output / PLOT_NAME, results)
    table = format_table(results)
    (options.output / TABLE_NAME).write_text(f"{table}\n", encoding="utf-8")
    print(table)


def _check_output(options: argparse.Namespace) -> None:
    """Reject an output in which the comparison would replace its inputs or files of the user."""
    output, names = options.output, [KEY_NAME, RESULTS_NAME, PLOT_NAME, TABLE_NAME]
    written = [output / RUNS_NAME, *(output / name for name in names)]
    reject_inputs([options.data, options.validation, options.init], written)
    own = is_own_comparison(output)
    reject_foreign_files(output, names, own=own)
    if (output / RUNS_NAME).exists() and not own:
        raise ValueError(
            f"{output / RUNS_NAME} exists and does not come from fillmask; move it away or choose "
            "another --output"
        )


def _epochs_by_size(options: argparse.Namespace) -> dict[int, int]:
    numbers = options.epochs_by_size or [options.epochs] * len(options.sizes)
    if len(numbers) != len(options.sizes) or min(numbers) < 1:
        raise ValueError(
            "--epochs-by-size must have one number of at least 1 per size, "
            f"{len(options.sizes)} in total (got {', '.join(map(str, numbers))})"
        )
    return dict(zip(options.sizes, numbers, strict=True))


def _check_sizes(options: argparse.Namespace, training: Dataset) -> None:
    rows = len(training.examples)
    if wrong := [size for size in options.sizes if not 1 <= size <= rows]:
        raise ValueError(
            f"--sizes must be from 1 to {rows:,}, the number of training rows (got {wrong[0]:,})"
        )
    if options.seeds < 1:
        raise ValueError(f"--seeds must be at least 1 (got {options.seeds})")
