"""Commands of the Makefile, the commit hooks, the workflows and the pages."""

import re
import subprocess
import tomllib

import yaml

from tests.docs import pages

MAKEFILE = pages.read(pages.ROOT / "Makefile")
WORKFLOWS = pages.ROOT / ".github" / "workflows"


def recipe(target: str, *variables: str) -> list[str]:
    """Return the commands of a make target, without those that install the environment."""
    command = ["make", "--dry-run", "--old-file=.venv-dev/.installed", target, *variables]
    printed = subprocess.run(command, cwd=pages.ROOT, capture_output=True, text=True, check=True)
    return printed.stdout.splitlines()


def test_each_target_runs_its_part_of_the_tests() -> None:
    expressions = {
        target: next(
            re.findall(r' -m "(.+?)"', line) for line in recipe(target) if "--numprocesses" in line
        )
        for target in ("suite", "test-slow", "test-fast")
    }
    assert expressions == {
        "suite": ["not slow"],
        "test-slow": ["slow"],
        "test-fast": ["not processes and not slow"],
    }


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
    suite, other = (
        [line for line in recipe(*target) if "--numprocesses" in line]
        for target in (("suite", "SUITE=", "WORKERS=3"), ("test-python", "PYTHON_VERSION=3.12"))
    )
    assert len(suite) == 1
    assert other == [suite[0].replace(" .venv-dev/", " .venv-dev-3.12/")] != suite


def test_ci_runs_every_python_version_of_the_classifiers() -> None:
    project = tomllib.loads(pages.read(pages.ROOT / "pyproject.toml"))["project"]
    classifiers = "\n".join(project["classifiers"])
    versions = re.findall(r":: Python :: (3\.\d+)$", classifiers, re.MULTILINE)
    workflow = yaml.safe_load(pages.read(WORKFLOWS / "ci.yaml"))
    assert workflow["jobs"]["test"]["strategy"]["matrix"]["python-version"] == versions
    [newer] = re.findall(r"\nfor version in (.+); do\n", pages.read(pages.ROOT / ".ci" / "run"))
    assert newer.split() == versions[1:]  # make test runs on the first


def test_workflows_run_make_targets() -> None:
    commands = {
        path.stem: {
            command
            for job in yaml.safe_load(pages.read(path))["jobs"].values()
            for step in job.get("steps", [])
            for command in re.findall(r"make (?:--silent )?([a-z-]+)", step.get("run", ""))
        }
        for path in WORKFLOWS.glob("*.yaml")
    }
    assert commands == {
        "ci": {"check", "fuzz", "test", "test-fast", "test-slow"},
        "release": {
            "dist",
            "native-wheel",
            "push-image",
            "release-check",
            "release-manifests",
            "release-notes",
        },
    }
    for target in set().union(*commands.values()):
        assert re.search(rf"^{target}:", MAKEFILE, re.MULTILINE), target


def test_workflows_pin_each_action_to_a_commit() -> None:
    used = [
        line.partition("uses: ")[2]
        for path in WORKFLOWS.glob("*.yaml")
        for line in pages.read(path).splitlines()
        if "uses: " in line and "uses: ./" not in line
    ]
    assert len(used) > 10
    pins = [re.fullmatch(r"([\w./-]+)@([0-9a-f]{40}) # (v[\d.]+)", line) for line in used]
    assert all(pins), used
    # one version of an action everywhere
    assert len({pin[1] for pin in pins if pin}) == len(set(used))


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


def test_nothing_installs_the_project_by_name() -> None:
    # The name `fillmask` on the package index belongs to nobody or to another project.
    code = [
        path
        for name in ("service", "model", "export")
        for path in (pages.ROOT / name).rglob("*.py")
    ]
    installs = re.compile(r"(?:pip|pipx|tool) install[ \"'\n]+fillmask(?![\w-]*\.whl)\b|fillmask\[")
    found = [
        f"{path.relative_to(pages.ROOT)}: {match[0]}"
        for path in (*code, *pages.PAGES)
        for match in installs.finditer(pages.read(path))
    ]
    assert found == []
