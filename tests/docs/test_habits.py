"""Commands of the Makefile, the commit hooks and the CI workflow."""

import re
import subprocess
import tomllib

import yaml

from tests.docs import pages

MAKEFILE = pages.read(pages.ROOT / "Makefile")


def recipe(target: str, *variables: str) -> list[str]:
    """Return the commands of a make target, without those that install the environment."""
    command = ["make", "--dry-run", "--old-file=.venv-dev/.installed", target, *variables]
    printed = subprocess.run(command, cwd=pages.ROOT, capture_output=True, text=True, check=True)
    return printed.stdout.splitlines()


def test_paths_of_the_fast_tests_exist() -> None:
    [command] = [line for line in recipe("test-fast") if "pytest" in line]
    paths = re.findall(r"tests/[\w./-]+", command)
    assert paths
    for path in paths:
        assert (pages.ROOT / path).exists(), path


def test_commit_hooks_are_the_commands_of_make_check() -> None:
    tools = [line for line in recipe("check") if line.startswith(".venv-dev/bin/")]
    commands = {line.removeprefix(".venv-dev/bin/") for line in tools}
    config = yaml.safe_load(pages.read(pages.ROOT / ".pre-commit-config.yaml"))
    entries = [hook["entry"] for repo in config["repos"] for hook in repo["hooks"]]
    # pre-commit passes file names, which ruff checks even if its settings exclude them
    hooks = {
        entry.removeprefix(".venv-dev/bin/").removesuffix(" --force-exclude") for entry in entries
    }
    assert hooks == {command.removesuffix(" .") for command in commands}


def test_every_python_version_runs_the_same_tests() -> None:
    [suite] = [line for line in recipe("suite") if "--numprocesses" in line]
    [other] = [
        line for line in recipe("test-python", "PYTHON_VERSION=3.12") if "--numprocesses" in line
    ]
    assert other == suite.replace(" .venv-dev/", " .venv-dev-3.12/") != suite


def test_ci_runs_every_python_version_of_the_classifiers() -> None:
    project = tomllib.loads(pages.read(pages.ROOT / "pyproject.toml"))["project"]
    classifiers = "\n".join(project["classifiers"])
    versions = re.findall(r":: Python :: (3\.\d+)$", classifiers, re.MULTILINE)
    workflow = yaml.safe_load(pages.read(pages.ROOT / ".github" / "workflows" / "ci.yaml"))
    assert workflow["jobs"]["test"]["strategy"]["matrix"]["python-version"] == versions
    [newer] = re.findall(r"\nfor version in (.+); do\n", pages.read(pages.ROOT / ".ci" / "run"))
    assert newer.split() == versions[1:]  # make test runs on the first


def test_workflow_runs_make_targets() -> None:
    workflow = yaml.safe_load(pages.read(pages.ROOT / ".github" / "workflows" / "ci.yaml"))
    commands = {
        step["run"] for job in workflow["jobs"].values() for step in job["steps"] if "run" in step
    }
    assert commands == {"make check", "make test-fast", "make test"}
    for command in commands:
        assert re.search(rf"^{command.removeprefix('make ')}:", MAKEFILE, re.MULTILINE)


def test_make_export_names_the_missing_model() -> None:
    command = ["make", "--dry-run", "export"]
    done = subprocess.run(command, cwd=pages.ROOT, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "run make export MODEL=google-bert/bert-base-uncased" in done.stderr
    options = ["MODEL=a/b", "OUTPUT=c", "OPTIONS=--revision v1"]
    printed = subprocess.run(
        ["make", "--dry-run", "--old-file=.venv-export/.installed", "export", *options],
        cwd=pages.ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert '.venv-export/bin/fillmask-export "a/b" --output "c" --precision int8 --rev' in printed
