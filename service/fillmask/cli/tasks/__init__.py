"""Tasks of the command by their names, with the output of each task."""

from fillmask.cli.tasks.base import Task, TaskName
from fillmask.cli.tasks.classify import ClassifyTask
from fillmask.cli.tasks.fill_mask import FillMaskTask
from fillmask.cli.tasks.score import ScoreTask
from fillmask.cli.tasks.sparse import SparseTask

DEFAULT_TASK: TaskName = "fill-mask"
TASKS: dict[TaskName, Task] = {
    task.name: task for task in (FillMaskTask(), ScoreTask(), ClassifyTask(), SparseTask())
}
