"""One run of a target in a process of its own, and the confirmation of what it finds."""

import os
import re
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from tests.running_server import ROOT, SOURCE_ROOTS

# Watchdog of libFuzzer, in wall time. An input that takes more than a second of CPU time is a
# finding already (`run_input`).
_HANG_S = 30
# most memory of a process, of which torch and the tokenizers take 450 MB
_MAX_MB = 1_500
_MAX_INPUT_BYTES = 2**18
_REPLAY_S = 60
_LOG_LINES = 12
# the code of this checkout, whatever is installed
_PATHS = [*map(str, SOURCE_ROOTS), os.environ.get("PYTHONPATH", "")]
_ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, _PATHS))}


@dataclass(frozen=True, slots=True)
class Outcome:
    """Result of the fuzzing of a target.

    Attributes:
        figures: executions, executions per second, covered branches and peak memory, in words.
        finding: path of the input that fails. None if no input fails.
        log: end of the output of the process or of the replay that failed.
    """

    figures: str
    finding: Path | None = None
    log: str = ""

    @property
    def passed(self) -> bool:
        """True if no input fails and the process has ended as it should."""
        return not self.log


def fuzz(name: str, seconds: float, seed: int, directory: Path) -> Outcome:
    """Fuzz a target and confirm a finding without atheris.

    Slow inputs of a busy machine are not findings. The fuzzing goes on after them.

    Args:
        directory: directory of the corpus, which the next run continues, of the findings and of
            the log.
    """
    corpus, findings = directory / name / "corpus", directory / name / "findings"
    for path in (corpus, findings):
        path.mkdir(parents=True, exist_ok=True)
    log_file = directory / name / "log"
    end_s = time.monotonic() + seconds
    while True:
        left_s = max(1, round(end_s - time.monotonic()))
        before = set(findings.iterdir())
        command = [
            *(sys.executable, "-m", "tests.fuzzing.worker", name, str(corpus)),
            *(f"-max_total_time={left_s}", f"-seed={seed}", f"-max_len={_MAX_INPUT_BYTES}"),
            *(f"-timeout={_HANG_S}", f"-rss_limit_mb={_MAX_MB}", "-print_final_stats=1"),
            *("-len_control=0", f"-artifact_prefix={findings}/"),
        ]
        # a file, because the tokenizers library writes lines about each of its panics
        with log_file.open("wb") as log:
            done = subprocess.run(
                command, cwd=ROOT, env=_ENVIRONMENT, stdout=log, stderr=log, check=False
            )
        output = log_file.read_text(encoding="utf-8", errors="replace")
        end = "\n".join(output.splitlines()[-_LOG_LINES:])
        figures = _figures(output)
        if done.returncode == 0:
            return Outcome(figures)
        found = sorted(set(findings.iterdir()) - before)
        if not found:
            return Outcome(figures, log=end)
        failure = replay(name, found[0])
        if failure is not None:
            return Outcome(figures, found[0], failure)
        if found[0].name.startswith("crash"):
            return Outcome(figures, found[0], f"{end}\n(only under atheris)")
        found[0].unlink()
        if time.monotonic() >= end_s:
            return Outcome(figures)


def replay(name: str, path: Path) -> str | None:
    """Run a target on the input in a file, in a process without atheris.

    Returns:
        The end of the output if the input is a finding, otherwise None.
    """
    command = [sys.executable, "-m", "tests.fuzzing", name, "--input", str(path)]
    try:
        done = subprocess.run(
            command,
            cwd=ROOT,
            env=_ENVIRONMENT,
            capture_output=True,
            text=True,
            timeout=_REPLAY_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"The input takes more than {_REPLAY_S} s."
    if done.returncode == 0:
        return None
    return "\n".join((done.stdout + done.stderr).splitlines()[-_LOG_LINES:])


def _figures(output: str) -> str:
    def last(pattern: str) -> str:
        found = re.findall(pattern, output)
        return found[-1] if found else "?"

    return (
        f"{last(r'number_of_executed_units: +([0-9]+)')} inputs, "
        f"{last(r'average_exec_per_sec: +([0-9]+)')}/s, "
        f"{last(r'cov: ([0-9]+)')} branches, {last(r'corp: ([0-9]+)')} in the corpus, "
        f"{last(r'peak_rss_mb: +([0-9]+)')} MB"
    )
