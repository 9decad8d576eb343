"""Jobs that continue after a crash at any file operation, compared with jobs without a crash."""

import asyncio
import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fillmask.cli import work
from fillmask.cli.commands import OnError, RowsCommand
from fillmask.cli.errors import CommandError, RowError
from fillmask.cli.files import process_file
from fillmask.cli.job import Job, locked
from fillmask.errors import InvalidRequestError
from fillmask.settings import Settings
from tests.properties import examples
from tests.service.cli.command_line import block_of, write_texts
from tests.service.cli.fake_model import FakeModel
from tests.service.cli.resume.failing_disk import Disk, KilledError
from tests.service.tiny import Tiny


async def answering(text: str) -> None:
    if "[MASK]" not in text:
        raise InvalidRequestError("The text has no mask.")


@dataclass(frozen=True)
class Attempt:
    """A run of the command that may crash."""

    disk: Disk
    on_error: OnError
    restart: bool = False


KEPT = st.sampled_from([0.0, 0.01, 0.02, 0.1, 0.5, 0.9, 1.0])
ATTEMPTS = st.builds(
    Attempt,
    st.builds(Disk, st.integers(1, 50), st.booleans(), KEPT),
    st.sampled_from(["error", "report", "report"]),
    st.sampled_from([False, False, False, True]),
)
LONG = f"{'x' * 9_000} [MASK]"  # longer than the buffer of a file
READ = st.sampled_from(["jsonl", "csv", "parquet", "txt"])
WRITTEN = st.sampled_from(["jsonl", "csv", "parquet"])


class CommandLine:
    """A command line in a directory of its own."""

    def __init__(
        self, directory: Path, bundle: Path, texts: list[str], read: str, written: str
    ) -> None:
        self.directory = directory
        self._source = write_texts(directory / f"in.{read}", texts)
        self.output = directory / f"out.{written}"
        self._settings = Settings(bundle=bundle)

    def run(self, disk: Disk, on_error: OnError = "report", **options: Any) -> bool:
        """Run the command and return whether it is complete."""
        source, target = self._source, self.output
        command = RowsCommand(
            input=source, output=target, parameters={"top_k": 1}, on_error=on_error, **options
        )
        parts = self.output.with_name(f"{self.output.name}.parts")
        is_begun = parts.exists()
        with disk.mounted(self.directory):
            try:
                asyncio.run(process_file(command, source, target, self._settings))
            except (KilledError, RowError, OSError):
                return False
            except CommandError as error:
                if "every row has an error" in str(error):  # as the output tells
                    return True
                # the crash came at the very end, after the removal of the job
                if is_begun or "already exists; use --overwrite" not in str(error):
                    raise
                return True
        assert disk.fails_at or not parts.exists()
        return True

    def whole(self, on_error: OnError) -> bytes | None:
        """Return the output of a job without a crash, or None if the policy ends it."""
        content = self.output.read_bytes() if self.run(Disk(), on_error) else None
        assert self.run(Disk(), overwrite=True, restart=True)
        self.output.unlink()
        return content


@pytest.fixture
def bundle(tiny: Tiny) -> Path:
    """Path of a bundle, which is short in messages."""
    return tiny.path


@pytest.fixture(autouse=True)
def _fast_model(monkeypatch: pytest.MonkeyPatch) -> None:
    async def load(*_: object) -> FakeModel:
        return FakeModel(answering)

    monkeypatch.setattr(work, "load_model", load)


@contextmanager
def sizes(seed: int) -> Iterator[None]:
    """Set random sizes of blocks, writes and parts."""
    rng = random.Random(seed)  # noqa: S311 - a choice, not a secret
    saves = {"save_rows": rng.randint(1, 6)}
    with (
        mock.patch("fillmask.cli.formats.base.BLOCK_ROWS", rng.randint(1, 6)),
        mock.patch("fillmask.cli.pipeline._LONG_ANSWERS_BYTES", rng.randint(1, 400)),
        mock.patch.dict(Job.__init__.__kwdefaults__, saves),
    ):
        yield


@examples(0.5)
@given(
    texts=st.lists(st.sampled_from(["a [MASK]", "[MASK] b", LONG, "bad"]), max_size=14),
    formats=st.tuples(READ, WRITTEN),
    attempts=st.lists(ATTEMPTS, min_size=1, max_size=4),
    seed=st.integers(0, 1_000),
    overwrite=st.booleans(),
)
def test_output_after_crashes_is_that_of_a_whole_run(
    bundle: Path,
    texts: list[str],
    formats: tuple[str, str],
    attempts: list[Attempt],
    seed: int,
    *,
    overwrite: bool,
) -> None:
    # The output is absent, old or whole at any time.
    with TemporaryDirectory() as name:
        job = CommandLine(Path(name), bundle, texts, *formats)
        whole = {"error": job.whole("error"), "report": job.whole("report")}
        current = None
        if overwrite:
            job.output.write_bytes(current := b"old")
        is_complete = False
        for attempt in [*attempts, Attempt(Disk(), "report")]:
            with sizes(seed):
                disk = replace(attempt.disk)
                # an output that is there already needs --overwrite
                restart = attempt.restart and (overwrite or current is None)
                is_complete = job.run(disk, attempt.on_error, restart=restart, overwrite=overwrite)
            content = job.output.read_bytes() if job.output.exists() else None
            if content != current:
                assert overwrite or current is None
                assert content == whole[attempt.on_error] is not None
                current = content
            if is_complete:
                break
            seed += 1
        assert is_complete
        assert current in whole.values()


@pytest.mark.parametrize(
    ("written", "kills", "restart"),
    [
        ("jsonl", False, False),
        ("jsonl", True, False),
        ("csv", True, True),
        ("parquet", True, False),
    ],
)
def test_each_operation_may_fail(
    bundle: Path, tmp_path: Path, written: str, *, kills: bool, restart: bool
) -> None:
    # It fails again in the run that continues. A run that starts again finds all kinds of files.
    job = CommandLine(tmp_path, bundle, ["a [MASK]", "bad", "[MASK] b"] * 2, "jsonl", written)
    whole, disk = job.whole("report"), Disk()
    with sizes(1):
        job.run(disk)
        for fails_at in range(1, disk.operations + 1):
            job.output.unlink()
            job.run(Disk(disk.operations - 12 if restart else fails_at, kills, 0.01))
            for again in (fails_at, 0):
                assert not job.output.exists() or job.output.read_bytes() == whole
                is_complete = job.run(Disk(again, kills, 0.01), restart=restart and bool(again))
            assert is_complete
            assert job.output.read_bytes() == whole
    assert disk.operations >= 20


@given(st.lists(st.integers(0, 10**6), min_size=1, max_size=5), st.data())
def test_answers_cut_anywhere_are_computed_again(numbers: list[int], data: st.DataObject) -> None:
    # The others stay. A crash cuts the end, and a disk may lose bytes in the middle.
    with TemporaryDirectory() as name, locked(output := Path(name, "out.csv")):
        job = Job(output, {})
        answers = [b"[%d]" % number for number in numbers]
        job.write(block_of(0, len(answers)), answers)
        job.save()
        [path] = Path(name).iterdir()
        whole = path.read_bytes()
        place = data.draw(st.integers(0, len(whole) - 1))
        for damaged in (whole[:place], whole[:place] + b"\0" + whole[place + 1 :]):
            path.write_bytes(damaged)
            if place < 9 and damaged[place:]:  # the file is not known to be ours
                continue
            kept = max(0, damaged[:place].count(b"\n") - 1)
            again = Job(output, {})
            assert list(again.answers()) == answers[:kept]
            assert again.rows == kept
