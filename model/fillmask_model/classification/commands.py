"""Command for fine-tuning an encoder to classify texts."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from fillmask_model.checkpoints.checkpoint import FILES, is_own_checkpoint
from fillmask_model.classification.best_checkpoint import BestCheckpoint
from fillmask_model.classification.comparison.commands import add_compare_command
from fillmask_model.classification.config import ClassifyConfig
from fillmask_model.classification.data.dataset import read_dataset
from fillmask_model.classification.data.labels import balanced_weights, encode_targets, label_names
from fillmask_model.classification.data.split import describe_shared_texts
from fillmask_model.classification.metrics import METRICS
from fillmask_model.classification.options import (
    add_data_options,
    add_training_options,
    check_same_form,
    columns_of,
    read_training_data,
)
from fillmask_model.classification.prediction import LabelledTexts
from fillmask_model.classification.report import REPORT_NAMES
from fillmask_model.classification.start import Start
from fillmask_model.classification.training import FineTuning
from fillmask_model.encoder.classifier import ClassifierConfig, ProblemType
from fillmask_model.encoder.counting import count_parameters
from fillmask_model.fine_tuning.config import max_tokens_of
from fillmask_model.fine_tuning.tables import Dataset
from fillmask_model.fine_tuning.tokens import (
    ON_LONG_TEXT,
    describe_truncated_texts,
    tokenize,
)
from fillmask_model.interruption import StopRequest
from fillmask_model.memory import keep_freed_memory, limit_kernel_cache
from fillmask_model.output_files import reject_foreign_files, reject_inputs

PROBLEM_TYPES: dict[str, ProblemType] = {
    "single-label": "single_label_classification",
    "multi-label": "multi_label_classification",
    "regression": "regression",
}


def add_commands(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `classify` and `compare` to the command line."""
    parser = commands.add_parser("classify", help=classify_command.__doc__)
    parser.set_defaults(command=classify_command)
    add_data_options(parser)
    parser.add_argument("--test", type=Path, help="file with the rows of the final test")
    parser.add_argument(
        "--problem-type",
        choices=PROBLEM_TYPES,
        default="single-label",
        help="kind of label: one per text, several per text, or a number (default: %(default)s)",
    )
    parser.add_argument("--output", required=True, type=Path, help="directory for the checkpoint")
    start = parser.add_mutually_exclusive_group(required=True)
    start.add_argument("--init", type=Path, help="checkpoint of the encoder to fine-tune")
    start.add_argument("--from-scratch", action="store_true", help="start from random weights")
    parser.add_argument(
        "--like", type=Path, help="checkpoint whose sizes and tokenizer --from-scratch uses"
    )
    config_help = "JSON file with EncoderConfig fields for --from-scratch"
    parser.add_argument("--config", type=Path, help=f"{config_help} (default: a small encoder)")
    tokenizer_help = "tokenizer.json for --from-scratch (default: a new tokenizer)"
    parser.add_argument("--tokenizer", type=Path, help=tokenizer_help)
    parser.add_argument(
        "--on-long-text",
        choices=ON_LONG_TEXT,
        default="error",
        help="reaction to a text of more than --max-tokens tokens (default: %(default)s)",
    )
    parser.add_argument(
        "--class-weights",
        choices=("none", "balanced"),
        default="none",
        help="weights of the labels in the training loss (default: %(default)s)",
    )
    every_metric = sorted({name for names in METRICS.values() for name in names})
    parser.add_argument(
        "--best-by",
        choices=every_metric,
        help="validation metric that selects the best epoch (default: accuracy, or macro_f1 with "
        "several labels per text, or mean_squared_error with numbers)",
    )
    add_training_options(parser)
    add_compare_command(commands)


def classify_command(options: argparse.Namespace) -> None:
    """Fine-tune an encoder to classify texts."""
    keep_freed_memory()
    limit_kernel_cache()
    problem_type, columns = PROBLEM_TYPES[options.problem_type], columns_of(options)
    best_by = _best_by(options, problem_type)
    config = ClassifyConfig.from_options(options)
    _check_output(options)
    training, validation, notes = read_training_data(options, problem_type)
    test = read_dataset(options.test, columns, problem_type) if options.test else None
    if test:
        check_same_form(training, test)
        notes += describe_shared_texts(training, test)
    for note in notes:
        print(note, flush=True)
    start = _start(options, training)
    labels = label_names(training, columns, problem_type)
    classifier = ClassifierConfig(
        labels=labels, problem_type=problem_type, pooling=options.pooling, activation=None
    )

    def prepare(dataset: Dataset) -> LabelledTexts:
        texts = tokenize(
            dataset,
            start.tokenizer,
            max_tokens=max_tokens_of(options, start.config.max_positions),
            type_vocab_size=start.config.type_vocab_size,
            on_long_text=options.on_long_text,
        )
        for note in describe_truncated_texts(dataset, texts):
            print(note, flush=True)
        return LabelledTexts(texts, encode_targets(dataset, labels, problem_type))

    rows = prepare(training)
    weights = None
    if options.class_weights == "balanced":
        weights = balanced_weights(rows.targets, len(labels), problem_type)
    test_rows = prepare(test) if test else None  # before training, because its rows may be invalid
    run = FineTuning(
        model=start.build(classifier, config.seed),
        training=rows,
        validation=prepare(validation),
        config=config,
        class_weights=weights,
        device=options.device,
    )
    print(
        f"parameters: {count_parameters(start.config, classifier).classifier:,}, "
        f"training rows: {len(training.examples):,}, "
        f"validation rows: {len(validation.examples):,}",
        flush=True,
    )
    tokenizer_json = start.tokenizer.to_str().encode()
    best = BestCheckpoint(options.output, run, classifier, tokenizer_json, best_by)
    with StopRequest() as stop:
        if not run.run(best.add_epoch, stop):
            print("SIGTERM has stopped the run", flush=True)
    print(_summary(best.write_metrics(test_rows), options.output))


def _best_by(options: argparse.Namespace, problem_type: ProblemType) -> str:
    allowed = METRICS[problem_type]
    chosen: str = options.best_by or allowed[0]
    if chosen not in allowed:
        raise ValueError(
            f"--best-by must be one of {', '.join(allowed)} with the problem type "
            f"{options.problem_type} (got {chosen})"
        )
    return chosen


def _check_output(options: argparse.Namespace) -> None:
    """Reject an output in which the run would replace its inputs or files of the user."""
    names = [*FILES, *REPORT_NAMES]
    starts = [path / name for path in (options.init, options.like) if path for name in FILES]
    data = [options.data, options.validation, options.test]
    reject_inputs(
        [*data, *starts, options.config, options.tokenizer],
        [options.output / name for name in names],
    )
    reject_foreign_files(options.output, names, own=is_own_checkpoint(options.output))


def _start(options: argparse.Namespace, training: Dataset) -> Start:
    scratch_only = ("like", "config", "tokenizer")
    given = [f"--{name}" for name in scratch_only if getattr(options, name)]
    if options.init and given:
        options_given = " and ".join(given)
        raise ValueError(
            f"{options_given} cannot be used with --init, which sets the encoder and the "
            f"tokenizer; remove {options_given}"
        )
    if options.like and len(given) > 1:
        options_given = " and ".join(given[1:])
        raise ValueError(
            f"{options_given} cannot be used with --like, which sets the sizes and the tokenizer; "
            f"remove {options_given}"
        )
    if options.init:
        return Start.from_checkpoint(options.init)
    if options.like:
        return Start.from_checkpoint(options.like).without_weights()
    return Start.from_scratch(training, options.config, options.tokenizer)


def _summary(metrics: dict[str, Any], directory: Path) -> str:
    """Format the metrics of the best epoch for the terminal."""
    lines = [f"best epoch {metrics['best_epoch']} of {metrics['epochs']}: {directory}"]
    for name in ("validation", "test"):
        if part := metrics.get(name):
            figures = [
                f"{metric} {part[metric]:.4f}{_interval(part, metric)}"
                for metric in METRICS[metrics["problem_type"]]
            ]
            lines.append(f"{name}, {part['rows']:,} rows: {', '.join(figures)}")
    return "\n".join(lines)


def _interval(part: dict[str, Any], metric: str) -> str:
    if "intervals" not in part:
        return ""
    low, high = part["intervals"][metric]
    return f" (95 % confidence interval {low:.4f} to {high:.4f})"
