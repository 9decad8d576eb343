"""Sources of settings and rejection of invalid values."""

import os
import re
from pathlib import Path

import pytest

from fillmask.errors import SettingsError
from fillmask.settings import flag, read_settings
from fillmask.settings.settings import settings_by_group


def test_environment_and_flags(monkeypatch: pytest.MonkeyPatch) -> None:
    # Flags override the environment, which overrides the defaults.
    monkeypatch.setenv("FILLMASK_MAX_TEXTS", "7")
    monkeypatch.setenv("FILLMASK_MAX_MASKS", "8")
    settings = read_settings(["--max-masks", "9", "--bundle=bundles/x"])
    assert settings.max_texts == 7
    assert settings.max_masks == 9
    assert settings.bundle == Path("bundles/x")


@pytest.mark.parametrize(
    ("variable", "nearest"),
    [("FILLMASK_PROT", "FILLMASK_PORT"), ("fillmask_maxtexts", "FILLMASK_MAX_TEXTS")],
)
def test_an_unknown_variable_is_refused(
    variable: str, nearest: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, "1")
    with pytest.raises(SettingsError) as caught:
        read_settings([])
    assert str(caught.value) == f'Unknown variable "{variable}"; remove it or use {nearest}.'


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("port", "http", 'a whole number from 0 to 65535 (got "http").'),
        ("port", "", 'a whole number from 0 to 65535 (got "").'),
        ("threads", "100000", 'a whole number from 1 to 1024 (got "100000").'),
        ("threads", " 5 ", 'a whole number from 1 to 1024 (got " 5 ").'),
        ("max_texts", "5.0", 'a whole number of at least 1 (got "5.0").'),
        ("max_texts", "-1", 'a whole number of at least 1 (got "-1").'),
        ("log_texts", "maybe", 'true or false (got "maybe").'),
        ("log_level", "loud", 'one of debug, info, warning, error (got "loud").'),
        ("host", "", 'an address or a name of this machine (got "").'),
        ("host", "a..b", 'an address or a name of this machine (got "a..b").'),
        ("reload_every_s", "9" * 20, f'a whole number from 0 to 31536000 (got "{20 * "9"}").'),
        *(
            (
                "cors_origins",
                value,
                f'a list such as https://a.example,http://localhost:3000 (got "{value}").',
            )
            for value in ("app.example.com", "https://a.example/", "*,x")
        ),
        ("served_name", "a b", 'a list such as fillmask or fillmask,org/other=MODEL (got "a b").'),
        ("served_name", "a=", 'a list such as fillmask or fillmask,org/other=MODEL (got "a=").'),
    ],
)
def test_a_bad_value_is_refused(
    name: str, value: str, sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = flag(name)
    with pytest.raises(SettingsError) as caught:
        read_settings([f"{given}={value}"])
    assert str(caught.value) == f"{given} must be {sentence}"
    monkeypatch.setenv(f"FILLMASK_{name.upper()}", value)
    with pytest.raises(SettingsError) as caught:
        read_settings([])
    assert str(caught.value) == f"FILLMASK_{name.upper()} must be {sentence}"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--prot", "1"], 'Unknown argument "--prot"; remove it or use --port'),
        (["--max-text=1"], 'Unknown argument "--max-text=1"; remove it or use --max-texts'),
        (["8000"], 'Unknown argument "8000"; remove it or use --'),
        (["--port"], "argument --port: expected one argument; run fillmask-serve --help for"),
    ],
)
def test_a_bad_flag_is_refused(arguments: list[str], sentence: str) -> None:
    # The service accepts no abbreviated flags and no positional arguments.
    with pytest.raises(SettingsError) as caught:
        read_settings(arguments)
    assert str(caught.value).startswith(sentence)


@pytest.mark.parametrize("service", ["FILLMASK", "fillmask_x"])
def test_the_variables_kubernetes_sets_are_explained(
    service: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Kubernetes sets several for a Service such as fillmask or fillmask-x.
    monkeypatch.setenv(f"{service}_PORT", "tcp://10.0.0.1:80")
    monkeypatch.setenv(f"{service}_SERVICE_HOST", "10.0.0.1")
    with pytest.raises(SettingsError) as caught:
        read_settings([])
    assert str(caught.value) == (
        f"The variable {service}_SERVICE_HOST, which Kubernetes sets for a Service, conflicts with "
        "the settings; set enableServiceLinks: false in the pod."
    )


def test_help_names_every_setting(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # The help has one section per group, with the group's flags in order.
    monkeypatch.setitem(os.environ, "COLUMNS", "400")
    with pytest.raises(SystemExit) as caught:
        read_settings(["--help"])
    assert caught.value.code == 0
    shown = capsys.readouterr().out
    for title, fields in settings_by_group().items():
        section = shown.partition(f"\n{title.lower()}:\n")[2].partition("\n\n")[0]
        shown_flags = re.findall(r"^  (--\S+) ", section, re.MULTILINE)
        assert shown_flags == [flag(name) for name in fields]
        for field in fields.values():
            assert field.description
            assert field.description in section
    assert "None" not in shown
    for line in (
        "--host HOST",
        "--bundle DIR",
        "--max-body-bytes BYTES",
        "--max-texts N",
        "--log-level debug|info|warning|error",
        "--intra-op-parallelism true|false",
        "number of texts per request (default 64)",
        "lower latency (default true)",
    ):
        assert re.search(rf"{re.escape(line)}\s", shown), line


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        read_settings(["--version"])
    assert caught.value.code == 0
    assert capsys.readouterr().out.startswith("fillmask ")


def test_two_ports_are_two() -> None:
    # The port of metrics must differ from the service's port.
    with pytest.raises(
        SettingsError, match=r"metrics_port must differ from port \(both are 9000\)"
    ):
        read_settings(["--port=9000", "--metrics-port=9000"])
    assert read_settings(["--port=9000", "--metrics-port=9001"]).metrics_port == 9001


def test_texts_are_not_logged_by_accident() -> None:
    # The setting log_texts requires the log level debug.
    with pytest.raises(SettingsError, match=r"requires log_level debug \(got info\)"):
        read_settings(["--log-texts=true"])
    assert read_settings(["--log-texts=true", "--log-level=debug"]).log_texts is True
