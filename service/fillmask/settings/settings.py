"""Table of all settings, with their defaults, bounds and meaning."""

import os
import re
from pathlib import Path
from typing import Literal, get_args, get_origin

from pydantic import Field, ValidationInfo, field_validator
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined
from pydantic_settings import BaseSettings, SettingsConfigDict

from fillmask.bundles.bundle import default_bundle_path
from fillmask.host import usable_cpus

ENV_PREFIX = "FILLMASK_"
MAX_THREADS = 1024
_MAX_S = 365 * 24 * 3600  # timers fail for a much longer time
_DECIMAL = re.compile(r"[0-9]+")
# read by OpenTelemetry's own packages
_COLLECTOR_VARIABLES = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
# units at the end of the names of whole numbers
_UNITS = ("port", "ms", "s", "bytes")
# first setting of each group -> title of the group
_GROUPS = {
    "host": "Address",
    "bundle": "Models",
    "threads": "Computation",
    "api_keys_file": "Access",
    "max_body_bytes": "Limits of a request",
    "max_batch_tokens": "Batches and queue",
    "request_timeout_ms": "Timeouts and shutdown",
    "log_level": "Logs and traces",
}


class Settings(BaseSettings):
    """Settings of the server and of the command."""

    model_config = SettingsConfigDict(env_prefix=ENV_PREFIX, frozen=True, extra="forbid")

    host: str = Field(
        default="127.0.0.1",
        min_length=1,
        json_schema_extra={"allowed": "an address or a name of this machine"},
        description="address to listen on, or `::` for all addresses of IPv4 and IPv6",
    )
    port: int = Field(
        default=8000, ge=0, le=65535, description="port to listen on, or 0 for any free port"
    )
    metrics_port: int = Field(
        default=0,
        ge=0,
        le=65535,
        description="separate port for `GET /metrics` and `GET /health/live`, which answers even "
        "while clients keep the main port busy, or 0 for only the main port",
    )
    bundle: Path = Field(
        default_factory=default_bundle_path,
        description="directory of a bundle or of several bundles (by default the built-in model)",
    )
    checkpoint: str = Field(
        default="",
        description="directory of a checkpoint or its id on a hub, in place of a bundle. The first "
        "start exports the checkpoint in int8 to the cache, if the export is installed",
    )
    model: str = Field(
        default="",
        description="model for requests without a model name (by default the first model)",
    )
    served_name: str = Field(
        default="",
        pattern=r"^(\w[\w.-]*(/\w[\w.-]*)*(=[^,]+)?\s*(,\s*|$))*$",
        json_schema_extra={"allowed": "a list such as fillmask or fillmask,org/other=MODEL"},
        description="comma-separated aliases: ALIAS of the default model, ALIAS=MODEL of any model",
    )
    reload_every_s: int = Field(
        default=0,
        ge=0,
        le=_MAX_S,
        description="seconds between checks for changed bundles, or 0 to check only at SIGHUP",
    )
    threads: int = Field(
        default_factory=usable_cpus,
        ge=1,
        le=MAX_THREADS,
        description="number of worker threads, each of which computes one batch at a time "
        "(by default the number of usable CPUs)",
    )
    intra_op_parallelism: bool = Field(
        default=True,
        description="whether a batch also uses the CPUs of idle workers, for a lower latency",
    )
    native: Literal["auto", "off"] = Field(
        default="auto",
        description="compute int8 models with the package fillmask-native where it is installed "
        "and fits the CPU (auto), or never (off)",
    )
    api_keys_file: Path | None = Field(
        default=None,
        description="file with one API key per line. The service reloads the file after changes. "
        "Requests except health checks, metrics and pages need `Authorization: Bearer KEY`",
    )
    cors_origins: str = Field(
        default="",
        pattern=r"^(\*|https?://[^/,\s]+(\s*,\s*https?://[^/,\s]+)*)?$",
        json_schema_extra={"allowed": "a list such as https://a.example,http://localhost:3000"},
        description="comma-separated origins whose pages may send requests, such as "
        "https://app.example.com (by default none)",
    )
    max_body_bytes: int = Field(
        default=2**20, ge=1, description="maximum size of a request body in bytes"
    )
    max_texts: int = Field(default=64, ge=1, description="maximum number of texts per request")
    max_masks: int = Field(
        default=128, ge=1, description="maximum number of masks per request, over all its texts"
    )
    max_top_k: int = Field(default=100, ge=1, description="maximum number of fills per mask")
    max_passes: int = Field(
        default=512,
        ge=1,
        description="maximum number of model passes per request for scores (one pass per token), "
        "targets, words and joint filling",
    )
    auto_truncate: bool = Field(
        default=False,
        description="whether texts to classify, to rerank or for sparse vectors that exceed the "
        "model's input lose their end, unless the request says otherwise. Texts to fill or score "
        "are never cut",
    )
    # With 32 clients on two CPUs (docs/decisions/005), 128 tokens gave 10 % fewer requests/s, and
    # 256 tokens the same number with higher latency and 3 MB more memory.
    max_batch_tokens: int = Field(
        default=192,
        ge=1,
        description="maximum number of tokens per batch, unless a single text is longer",
    )
    # 64 texts of 512 tokens, the largest request to a BERT model, take a few seconds
    max_waiting_tokens: int = Field(
        default=32768,
        ge=1,
        description="maximum number of tokens that wait or run in the interactive lane, above "
        "which the response is 429",
    )
    max_wait_ms: int = Field(
        default=350,
        ge=1,
        description="maximum estimated wait of an interactive request in milliseconds at the "
        "recent throughput, above which the response is 429",
    )
    # the tokens of all passes that score one text of 512 tokens
    max_bulk_tokens: int = Field(
        default=262144,
        ge=1,
        description="maximum number of tokens that wait or run in the bulk lane (requests with "
        "many passes, many tokens or long responses), above which the response is 429",
    )
    request_timeout_ms: int = Field(
        default=30_000,
        ge=1,
        le=600_000,
        description="time limit in milliseconds of requests without the header "
        "X-Request-Timeout-Ms, after which the response is 504",
    )
    drain_delay_s: int = Field(
        default=1,
        ge=0,
        le=_MAX_S,
        description="seconds after SIGTERM in which the service still responds, so that load "
        "balancers notice that it is not ready and stop sending requests",
    )
    shutdown_grace_s: int = Field(
        default=30,
        ge=0,
        le=_MAX_S,
        description="seconds after the drain delay in which accepted requests can finish",
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="minimum severity of logged messages"
    )
    log_format: Literal["auto", "json", "text"] = Field(
        default="auto",
        description="log format: one JSON object per line, text for people, or auto for text on a "
        "terminal and json elsewhere",
    )
    access_log: Literal["off", "errors", "all"] = Field(
        default="errors",
        description="requests to log, one line each (errors means a status of 500 or above)",
    )
    log_texts: bool = Field(
        default=False,
        description="log request bodies, which contain users' texts (requires log_level debug)",
    )
    traces: Literal["auto", "on", "off"] = Field(
        default="auto",
        description="send traces to an OpenTelemetry collector (auto means only if "
        "OTEL_EXPORTER_OTLP_ENDPOINT or OTEL_EXPORTER_OTLP_TRACES_ENDPOINT is set)",
    )

    @field_validator("*", mode="before")
    @classmethod
    def _read_decimal(cls, value: object, field: ValidationInfo) -> object:
        """Reject integers such as 5.0, 1_0 and " 5 ", which pydantic accepts."""
        name = field.field_name or ""
        is_integer = cls.model_fields[name].annotation is int
        if is_integer and isinstance(value, str) and not _DECIMAL.fullmatch(value):
            raise ValueError(name)
        return value

    @field_validator("host")
    @classmethod
    def _check_host(cls, host: str) -> str:
        """Reject names for which the look-up of their address raises a UnicodeError."""
        host.encode("idna")
        return host

    @property
    def tracing_enabled(self) -> bool:
        if self.traces == "auto":
            return any(os.environ.get(variable) for variable in _COLLECTOR_VARIABLES)
        return self.traces == "on"


def settings_by_group() -> dict[str, dict[str, FieldInfo]]:
    """Return the title of each group of settings, and its settings by name."""
    groups: dict[str, dict[str, FieldInfo]] = {}
    title = ""
    for name, field in Settings.model_fields.items():
        title = _GROUPS.get(name, title)
        groups.setdefault(title, {})[name] = field
    return groups


def allowed(name: str) -> str:
    """Return the allowed values of a setting, as a phrase that follows "must be"."""
    schema = Settings.model_json_schema()["properties"][name]
    if "enum" in schema:
        return "one of " + ", ".join(schema["enum"])
    if "allowed" in schema:
        return str(schema["allowed"])
    if schema.get("type") == "boolean":
        return "true or false"
    if schema.get("type") != "integer":
        return "a non-empty string"
    if "maximum" in schema:
        return f"a whole number from {schema['minimum']} to {schema['maximum']}"
    return f"a whole number of at least {schema['minimum']}"


def metavar(name: str, field: FieldInfo) -> str:
    """Return the choices or the kind of a setting's value, for the help."""
    unit = name.rpartition("_")[2]
    if get_origin(field.annotation) is Literal:
        return "|".join(get_args(field.annotation))
    if field.annotation is bool:
        return "true|false"
    if field.annotation is Path:
        return "DIR"
    if field.annotation is int and unit not in _UNITS:
        return "N"
    return unit.upper()


def help_text(field: FieldInfo) -> str:
    default = default_text(field)
    text = f"{field.description} (default {default})" if default else str(field.description)
    return text.replace("%", "%%")


def default_text(field: FieldInfo) -> str:
    """Return the default of a setting, or an empty string if its description has the default."""
    if field.default in {None, "", PydanticUndefined}:
        return ""
    return str(field.default).lower() if field.annotation is bool else str(field.default)
