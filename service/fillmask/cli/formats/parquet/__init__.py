"""Parquet, whose modules need pyarrow."""

from fillmask.cli.formats.base import Rows, Source
from fillmask.cli.formats.output import Format, Output, RowWriter


def _read(source: Source) -> Rows:
    from fillmask.cli.formats.parquet.rows import ParquetRows  # noqa: PLC0415 - an optional extra

    return ParquetRows(source)


def _write(rows: Rows, output: Output) -> RowWriter:
    from fillmask.cli.formats.parquet.writer import ParquetRowWriter  # noqa: PLC0415 - an optional extra

    return ParquetRowWriter(rows, output)


PARQUET = Format((".parquet",), _read, _write, is_text=False)
