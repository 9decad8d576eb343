"""Rows and tables of the tasks of the command."""

from fillmask.cli.tasks.base import TaskRows
from fillmask.cli.tasks.classify import ClassifyRows
from fillmask.cli.tasks.fill_mask import FillMaskRows
from fillmask.cli.tasks.score import ScoreRows
from fillmask.cli.tasks.sparse import SparseRows
from fillmask.tasks.task import FILL_MASK, TASKS

DEFAULT_TASK = FILL_MASK.name
_ROWS: dict[str, type[TaskRows]] = {
    "fill-mask": FillMaskRows,
    "score": ScoreRows,
    "classify": ClassifyRows,
    "sparse": SparseRows,
}


def rows_of(task: str) -> TaskRows:
    """Return the rows of a task by its name."""
    return _ROWS.get(task, TaskRows)(TASKS[task])
