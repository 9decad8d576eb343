"""Parquet types of the columns with the results of each task."""

import pyarrow as pa

from fillmask.cli.tasks.base import TaskName

# Fills with any options have this type. Fields that a fill lacks are null.
FILL_TYPE = pa.struct(
    [
        ("mask", pa.int32()),  # number of the mask in its text, from 1
        ("score", pa.float64()),
        ("token", pa.int32()),
        ("token_str", pa.string()),
        ("sequence", pa.string()),
        ("log_prob", pa.float64()),
        ("target_score", pa.float64()),
        ("tokens", pa.list_(pa.int32())),
        ("token_strs", pa.list_(pa.string())),
        ("window", pa.list_(pa.int32())),
    ]
)


TOKEN_SCORE_TYPE = pa.struct(
    [
        ("token", pa.int32()),
        ("token_str", pa.string()),
        ("part", pa.string()),  # "text" or "text_pair" in a pair, otherwise null
        ("start", pa.int32()),
        ("end", pa.int32()),
        ("log_prob", pa.float64()),
        ("surprisal", pa.float64()),
    ]
)
LABEL_TYPE = pa.struct([("label", pa.string()), ("score", pa.float64())])

# columns that Parquet output adds, by task
RESULT_COLUMNS: dict[TaskName, pa.Schema] = {
    "fill-mask": pa.schema([("fills", pa.list_(FILL_TYPE))]),
    "score": pa.schema(
        [
            ("log_prob", pa.float64()),
            ("pseudo_perplexity", pa.float64()),
            ("tokens", pa.list_(TOKEN_SCORE_TYPE)),
        ]
    ),
    "classify": pa.schema(
        [
            ("label", pa.string()),
            ("score", pa.float64()),
            ("labels", pa.list_(LABEL_TYPE)),
        ]
    ),
    "sparse": pa.schema(
        [
            ("indices", pa.list_(pa.int32())),
            ("values", pa.list_(pa.float32())),
            ("tokens", pa.list_(pa.string())),
        ]
    ),
}
