"""Ways to fill a large file: the command, Ray and Spark, with the recipes of docs/scale-out.md."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.comparison.process import environment
from benchmarks.scale.recipe import Recipe, read_recipe
from benchmarks.scale.rows import Answer, differences, read_answers
from benchmarks.scale.run import Kill, Run, run_shell

PAGE = Path(__file__).parents[2] / "docs" / "scale-out.md"
TEXTS = "texts.parquet"


class CheckError(RuntimeError):
    """A run that ended otherwise than the page says."""


@dataclass(frozen=True, slots=True)
class Way:
    """A recipe with the environment that runs it.

    Attributes:
        title: heading on the page.
        output: name of the output file or folder.
        package: the engine's distribution. None for the command, which needs none.
        worker: part of the title of the processes that compute.
        driver: part of the title of the process that a user starts.
    """

    title: str
    environment: Path
    output: str
    package: str | None = None
    worker: str = ""
    driver: str = ""

    @property
    def name(self) -> str:
        """Name in the table, with the engine's version."""
        if self.package is None:
            return "`fillmask`"
        code = f"from importlib.metadata import version; print(version({self.package!r}))"
        python = self.environment / "bin" / "python"
        done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True)
        return f"{self.title} {done.stdout.strip()}"


def ways(environment: Path) -> tuple[Way, Way, Way]:
    """Return the command, Ray and Spark, all of them installed in one environment."""
    return (
        Way("The command", environment, "fills.parquet"),
        Way("Ray Data", environment, "fills-ray", "ray", "ray::MapWorker", "python fill_ray.py"),
        Way("Spark", environment, "fills-spark", "pyspark", "pyspark.daemon", "SparkSubmit"),
    )


class Trial:
    """Runs of one way, in a folder of its own.

    Args:
        folder: an empty folder.
        texts: the input.
    """

    def __init__(self, way: Way, folder: Path, texts: Path) -> None:
        self._way, self._folder = way, folder
        self._recipe: Recipe = read_recipe(PAGE.read_text(encoding="utf-8"), way.title)
        self._recipe.write_script(folder)
        shutil.copy(texts, folder / TEXTS)

    def fill(self) -> Run:
        """Run the recipe to its end.

        Raises:
            CheckError: it failed.
        """
        return self._require_success(self._run())

    def fill_despite_kill(self) -> Run:
        """Kill a busy worker after the first output file. The recipe must end well all the same.

        Raises:
            CheckError: it failed, or ended before the kill.
        """
        return self._require_success(self._run(self._way.worker))

    def refuse_after_kill(self) -> None:
        """Kill the driver after the first output file. The second start must then refuse to write.

        Raises:
            CheckError: the driver ended before the kill, or the second start wrote.
        """
        if self._run(self._way.driver).exit_code == 0:
            raise CheckError(f"{self._way.title} ended well without its driver")
        before = self._files()
        again = self._run()
        if again.exit_code == 0 or "already exists" not in self._log() or self._files() != before:
            raise CheckError(f"{self._way.title} must refuse the output of a killed run")

    def answers(self) -> list[Answer]:
        """Return the rows of the output."""
        return list(read_answers(self._folder / self._way.output))

    def check_answers(self, expected: Sequence[Answer]) -> None:
        """Compare the output with another.

        Raises:
            CheckError: the outputs differ.
        """
        if found := differences(expected, self.answers()):
            raise CheckError(f"{self._way.title}: rows {'; '.join(found)}")

    def _run(self, victim: str | None = None) -> Run:
        kill = None if victim is None else Kill(victim, lambda: bool(self._files()))
        run = run_shell(
            self._recipe.shell, self._folder, self._variables(), self._folder / "log", kill
        )
        print(
            f"{self._way.title}: exit code {run.exit_code} after {run.seconds:.1f} s, "
            f"{run.cpu_s:.1f} CPU-s, {run.peak_bytes / 1e6:.0f} MB in {run.processes} processes",
            file=sys.stderr,
        )
        if kill is not None and run.killed is None:
            raise CheckError(f"{self._way.title} ended before {victim} could be killed")
        return run

    def _variables(self) -> dict[str, str]:
        programs = (self._way.environment / "bin").absolute()
        return environment() | {
            "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
            "RAY_TMPDIR": str(self._folder),  # else Ray leaves its logs in /tmp
        }

    def _files(self) -> set[Path]:
        return set((self._folder / self._way.output).rglob("*.parquet"))

    def _require_success(self, run: Run) -> Run:
        if run.exit_code:
            raise CheckError(
                f"{self._way.title} ended with exit code {run.exit_code}:\n{self._log()[-4000:]}"
            )
        return run

    def _log(self) -> str:
        return (self._folder / "log").read_text(errors="replace")
