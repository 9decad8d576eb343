"""The settings: flags over FILLMASK_ environment variables over defaults. Read nowhere else."""

import argparse
import difflib
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, NoReturn

from pydantic import Field, ValidationError, ValidationInfo, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from service import __version__
from service.bundles.bundle import default_bundle_path
from service.errors import SettingsError, quote
from service.host import usable_cpus

ENV_PREFIX = "FILLMASK_"
_DECIMAL = re.compile(r"[0-9]+")
# For a Service named NAME, pods have NAME_SERVICE_HOST, NAME_SERVICE_PORT and one more for each
# named port, NAME_PORT, NAME_PORT_80_TCP and three that begin like the last.
_SERVICE_LINK = re.compile(
    rf"{ENV_PREFIX}(\w+_)?"
    r"(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)"
)
_SERVICE_ADDRESS = re.compile(r"(tcp|udp|sctp)://.*")
# OpenTelemetry's own; its packages read what they say
_COLLECTOR_VARIABLES = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")


class Settings(BaseSettings):
    """What a person who runs the service can set."""

    model_config = SettingsConfigDict(env_prefix=ENV_PREFIX, frozen=True, extra="forbid")

    host: str = Field(default="127.0.0.1", min_length=1, description="address to listen on")
    port: int = Field(
        default=8000, ge=0, le=65535, description="port to listen on; 0 takes a free one"
    )
    metrics_port: int = Field(
        default=0,
        ge=0,
        le=65535,
        description="another port to listen on, the only one then that answers `GET /metrics`; "
        "0 for none: the port above does",
    )
    bundle: Path = Field(
        default_factory=default_bundle_path,
        description="directory of the model, or of several models' directories; "
        "the built-in one by default",
    )
    model: str = Field(
        default="",
        description="name of the model that requests get that name none, where there are several; "
        "the first by default",
    )
    reload_every_s: int = Field(
        default=0,
        ge=0,
        description="seconds between looks for bundles that are new or have changed; "
        "0 only looks at SIGHUP",
    )
    threads: int = Field(
        default_factory=usable_cpus,
        ge=1,
        le=1024,
        description="batches computed at the same time, one thread each; "
        "by default the CPUs this process may use",
    )
    api_keys_file: Path | None = Field(
        default=None,
        description="file with API keys, one a line; with it, requests need one of them as "
        "Authorization: Bearer; read again when it changes",
    )
    cors_origins: str = Field(
        default="",
        pattern=r"^(\*|https?://[^/,\s]+(\s*,\s*https?://[^/,\s]+)*)?$",
        json_schema_extra={"allowed": "a list such as https://a.example,http://localhost:3000"},
        description="origins whose pages may send requests, such as https://app.example.com, with "
        "commas between them; none by default",
    )
    max_body_bytes: int = Field(default=2**20, ge=1, description="largest body of a request")
    max_texts: int = Field(default=64, ge=1, description="most texts of a request")
    max_masks: int = Field(
        default=128, ge=1, description="most masks of a request, over all its texts"
    )
    max_top_k: int = Field(default=100, ge=1, description="most fills a mask")
    max_passes: int = Field(
        default=512,
        ge=1,
        description="most passes of the model for the scores or targets of a request: about one a "
        "token",
    )
    # measured with 32 clients on two CPUs (LOG.md, 2026-11-20): 128 gave 10 % fewer requests/s, 256
    # the same number, more latency and 3 MB more memory
    max_batch_tokens: int = Field(
        default=192, ge=1, description="tokens computed together; a longer text is computed alone"
    )
    # 64 texts of 512 tokens, the largest request of a BERT, and a few seconds' work.
    max_waiting_tokens: int = Field(
        default=32768,
        ge=1,
        description="most tokens accepted and not yet answered; above it the answer is 429",
    )
    max_wait_ms: int = Field(
        default=350,
        ge=1,
        description="longest wait for an answer that a request is accepted with, at the speed "
        "measured of late; above it the answer is 429",
    )
    # one text of 512 tokens, scored token by token, is as much
    max_bulk_tokens: int = Field(
        default=262144,
        ge=1,
        description="the same over all passes of requests that take many; they wait for the others",
    )
    max_connections: int = Field(
        default=1024, ge=1, description="most open connections; above it the answer is 429"
    )
    request_timeout_ms: int = Field(
        default=30_000,
        ge=1,
        le=600_000,
        description="time for an answer, where X-Request-Timeout-Ms names no other; then it is 504",
    )
    drain_delay_s: int = Field(
        default=1,
        ge=0,
        description="seconds after SIGTERM in which it is not ready and still answers, for "
        "balancers to notice",
    )
    shutdown_grace_s: int = Field(
        default=30, ge=0, description="seconds that accepted requests then have to finish"
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="least severe messages to log"
    )
    log_format: Literal["auto", "json", "text"] = Field(
        default="auto",
        description="json: an object a line; text: for people; auto: text on a terminal, json "
        "elsewhere",
    )
    access_log: Literal["off", "errors", "all"] = Field(
        default="errors",
        description="requests that have a line in the log each; errors are those that the service "
        "could not answer, 500 and above",
    )
    log_texts: bool = Field(
        default=False,
        description="log the bodies of requests, and so what callers write; needs the log level "
        "debug",
    )
    traces: Literal["auto", "on", "off"] = Field(
        default="auto",
        description="send traces to OpenTelemetry's collector; auto: if "
        "OTEL_EXPORTER_OTLP_ENDPOINT names one",
    )

    @field_validator("*", mode="before")
    @classmethod
    def _read_decimal(cls, value: object, field: ValidationInfo) -> object:
        """Refuse what pydantic takes for a whole number as well: 5.0, 1_0, blanks around one."""
        name = field.field_name or ""
        number = cls.model_fields[name].annotation is int
        if number and isinstance(value, str) and not _DECIMAL.fullmatch(value):
            raise ValueError(name)
        return value

    @property
    def traced(self) -> bool:
        """Whether traces are sent."""
        if self.traces == "auto":
            return any(os.environ.get(variable) for variable in _COLLECTOR_VARIABLES)
        return self.traces == "on"


def read_settings(arguments: Sequence[str]) -> Settings:
    """Read the environment and the flags, e.g. `["--max-texts", "8"]`.

    Raises:
        SettingsError: a flag or a FILLMASK_ variable is unknown or has a value that is not
            allowed.
        SystemExit: after --help or --version.
    """
    flags = _read_flags(arguments)
    _refuse_unknown_variables()
    try:
        settings = Settings(**flags)
    except ValidationError as error:
        first = error.errors()[0]
        name = str(first["loc"][0]).lower().removeprefix(ENV_PREFIX.lower())
        source = _flag(name) if name in flags else _variable(name)
        raise SettingsError(
            f"{source} is {quote(str(first['input']))}; allowed is {allowed(name)}."
        ) from None
    if settings.metrics_port and settings.metrics_port == settings.port:
        raise SettingsError(
            f"metrics_port is {settings.metrics_port}, as port is; allowed is another one, or 0."
        )
    if settings.log_texts and settings.log_level != "debug":
        raise SettingsError(
            f"log_texts needs the log level debug, and log_level is {settings.log_level}."
        )
    return settings


def allowed(name: str) -> str:
    """The values a setting may have, in words."""
    schema = Settings.model_json_schema()["properties"][name]
    if "enum" in schema:
        return "one of " + ", ".join(schema["enum"])
    if "allowed" in schema:
        return str(schema["allowed"])
    if schema.get("type") == "boolean":
        return "true or false"
    if schema.get("type") != "integer":
        return "a text that is not empty"
    if "maximum" in schema:
        return f"a whole number from {schema['minimum']} to {schema['maximum']}"
    return f"a whole number of at least {schema['minimum']}"


class _Parser(argparse.ArgumentParser):
    """Raises where argparse would print its usage and exit."""

    def error(self, message: str) -> NoReturn:
        raise SettingsError(f"{message}; {self.prog} --help lists the flags.")


def _read_flags(arguments: Sequence[str]) -> dict[str, Any]:
    """The flags that were given, by the setting's name."""
    parser = _Parser(
        prog="fillmask-serve",
        description="Serve a masked language model over HTTP.",
        epilog=f"Each flag is also a variable: {_flag('max_texts')} is {_variable('max_texts')}.",
        allow_abbrev=False,
        argument_default=argparse.SUPPRESS,
    )
    parser.add_argument("--version", action="version", version=f"fillmask {__version__}")
    for name, field in Settings.model_fields.items():
        default = "" if field.default_factory else f" (default {field.default})"
        help_text = f"{field.description}{default}".replace("%", "%%")
        parser.add_argument(_flag(name), metavar="VALUE", help=help_text)
    flags, unknown = parser.parse_known_args(arguments)
    if unknown:
        nearest = _nearest(unknown[0], [_flag(name) for name in Settings.model_fields])
        raise SettingsError(f"{quote(unknown[0])} is not a flag; the nearest is {nearest}.")
    return vars(flags)


def _refuse_unknown_variables() -> None:
    """Refuse what pydantic-settings passes over: a FILLMASK_ variable that sets nothing."""
    known = [_variable(name) for name in Settings.model_fields]
    for variable in sorted(os.environ):
        if _is_service_link(variable.upper(), os.environ[variable]):
            raise SettingsError(
                f"Kubernetes has set {variable} and others for a Service whose name begins with "
                "fillmask, which would be taken for settings; set enableServiceLinks: false in the "
                "pod."
            )
        if variable.upper().startswith(ENV_PREFIX) and variable.upper() not in known:
            nearest = _nearest(variable.upper(), known)
            raise SettingsError(f"{quote(variable)} sets nothing; the nearest is {nearest}.")


def _is_service_link(variable: str, value: str) -> bool:
    if _SERVICE_LINK.fullmatch(variable):
        return True
    named_port = variable.startswith(ENV_PREFIX) and variable.endswith("PORT")
    return named_port and _SERVICE_ADDRESS.fullmatch(value) is not None


def _nearest(name: str, known: Sequence[str]) -> str:
    return difflib.get_close_matches(name, known, n=1, cutoff=0)[0]


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def _variable(name: str) -> str:
    return ENV_PREFIX + name.upper()
