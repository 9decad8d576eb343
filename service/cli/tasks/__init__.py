"""Tasks of the command by their names, with the output of each task."""

from service.cli.tasks.base import AnyTask, TaskName
from service.cli.tasks.classify import ClassifyTask
from service.cli.tasks.fill_mask import FillMaskTask
from service.cli.tasks.score import ScoreTask

DEFAULT_TASK: TaskName = "fill-mask"
TASKS: dict[TaskName, AnyTask] = {
    task.name: task for task in (FillMaskTask(), ScoreTask(), ClassifyTask())
}
