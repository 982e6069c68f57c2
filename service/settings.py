"""Every knob of the service, in one object.

A setting is given by a flag of `vqa serve`, else by `VQA_<NAME>` in the environment, else by its default. A value that
cannot be used refuses to start and names the setting.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from pydantic import Field, SecretStr, ValidationError, field_validator, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from service.errors import SettingsError

MIB = 1024 * 1024
Policy = Literal["auto", "classifier", "generator", "cascade"]
Priority = Literal["interactive", "batch"]
ENV_PREFIX = "VQA_"
# What holds for the service as a whole, and of which each of several workers gets its part.
_DIVIDED = ("max_in_flight", "max_buffered_bytes", "cache_bytes")
_PACKAGE_PARENT = Path(__file__).resolve().parent.parent


class Settings(BaseSettings):
    """All settings. Read once at start, never changed afterwards."""

    # An empty variable is one that is not set: an empty host would mean every interface.
    # Inputs stay out of errors: they may be secrets.
    model_config = SettingsConfigDict(
        env_prefix=ENV_PREFIX, env_ignore_empty=True, frozen=True, extra="ignore", hide_input_in_errors=True
    )

    # the door
    host: str = Field("127.0.0.1", min_length=1, description="Address to listen on.")
    port: int = Field(8000, ge=0, le=65535, description="Port to listen on; 0 takes any free one.")
    log_level: Literal["debug", "info", "warning", "error"] = Field("info", description="Least level that is logged.")
    log_format: Literal["text", "json"] = Field("text", description="One line a record, for people or for programs.")
    workers: int = Field(
        1, ge=1, le=256, description="Processes that serve; they share the CPUs and the limits. Prefer replicas."
    )
    metrics_dir: Path | None = Field(
        None,
        description="Folder of its own where several workers keep their metrics; none means a temporary one.",
    )
    drain_timeout_s: float = Field(20.0, ge=0, le=3600, description="Seconds that accepted requests get after SIGTERM.")

    api_keys: Path | None = Field(
        None, description="File of the keys that may ask, a line `tenant:key` each; none lets everybody ask."
    )

    # who answers
    models_dir: Path = Field(_PACKAGE_PARENT / "models", description="Folder that holds one folder a model.")
    classifier: str = Field("vilt-shapes", description="Name of the classifier to serve.")
    policy: Policy = Field("auto", description="Routing policy of a question that names none.")
    device: Literal["cpu", "cuda"] = Field("cpu", description="Where the classifier runs; cuda needs onnxruntime-gpu.")
    device_id: int = Field(0, ge=0, description="Which CUDA device.")
    threads: int = Field(
        0,
        ge=0,
        description="Threads for inference; 0 means every CPU that the cgroup and the affinity allow.",
    )
    layout: Literal["auto", "wide", "narrow"] = Field(
        "auto",
        description="All threads on one inference (wide), one on each (narrow), or what is measured to be best at "
        "start (auto; may keep the weights twice).",
    )
    max_batch_size: int = Field(8, ge=1, le=256, description="Most questions in one inference.")

    # what is remembered
    cache_bytes: int = Field(
        64 * MIB, ge=0, description="Most bytes of answers kept in memory for the same question again; 0 is off."
    )
    redis_url: SecretStr | None = Field(
        None,
        description="Redis in which replicas share those answers (redis://, rediss://, unix://). A password in it is "
        "better given in the environment.",
    )
    cache_ttl_s: int = Field(86_400, ge=1, le=31_536_000, description="Seconds after which Redis forgets an answer.")
    cache_secret: SecretStr | None = Field(
        None,
        min_length=16,
        description="Secret that hides questions from Redis, the same in all replicas; better given in the "
        "environment. Without one each process makes its own and shares nothing.",
    )

    # how much is taken in
    max_in_flight: int = Field(256, ge=1, description="Most questions admitted at once; one more is refused with 503.")
    max_buffered_bytes: int = Field(
        256 * MIB,
        ge=MIB,
        description="Most bytes of request bodies held at once; one more body is refused with 503.",
    )
    decode_threads: int = Field(0, ge=0, description="Threads that decode pictures; 0 means as `threads`.")
    body_timeout_s: float = Field(30.0, gt=0, le=3600, description="Seconds within which a body must have arrived.")
    default_timeout_ms: int = Field(10_000, ge=1, le=3_600_000, description="Deadline of a question that names none.")
    max_timeout_ms: int = Field(120_000, ge=1, le=3_600_000, description="Longest deadline that a caller may ask for.")

    # how large one request may be
    max_body_bytes: int = Field(
        28 * MIB, ge=1024, description="Largest request body; base64 makes pictures a third larger."
    )
    max_image_bytes: int = Field(20 * MIB, ge=1024, description="Largest encoded picture.")
    max_image_pixels: int = Field(
        64 * MIB, ge=1, description="Most pixels (width x height) of a picture, from its header."
    )
    max_question_chars: int = Field(1_000, ge=1, description="Longest question, in characters.")
    max_questions: int = Field(64, ge=1, description="Most questions of one `POST /answers`.")

    @field_validator("port", mode="before")
    @classmethod
    def _not_a_service_link(cls, value: Any) -> Any:
        """Kubernetes sets VQA_PORT=tcp://… in every pod beside a Service named `vqa`; that is no setting of ours."""
        return cls.model_fields["port"].default if isinstance(value, str) and value.startswith("tcp://") else value

    @field_validator("log_level", mode="before")
    @classmethod
    def _any_case(cls, value: Any) -> Any:
        return value.lower() if isinstance(value, str) else value

    @field_validator("redis_url")
    @classmethod
    def _a_redis_address(cls, value: SecretStr | None) -> SecretStr | None:
        if value is not None and value.get_secret_value().partition("://")[0] not in ("redis", "rediss", "unix"):
            raise ValueError("it must begin with redis://, rediss:// or unix://")
        return value

    @model_validator(mode="after")
    def _consistent(self) -> Settings:
        if self.max_questions > self.max_in_flight:
            raise ValueError("max_questions may not exceed max_in_flight: such a request could never be admitted")
        if self.default_timeout_ms > self.max_timeout_ms:
            raise ValueError("default_timeout_ms may not exceed max_timeout_ms")
        if self.redis_url is not None and self.cache_secret is None:
            raise ValueError(
                "redis_url needs cache_secret (VQA_CACHE_SECRET): with a secret of its own no replica finds another's "
                "answers"
            )
        if self.max_buffered_bytes < self.max_body_bytes:
            raise ValueError("max_buffered_bytes may not be below max_body_bytes: the largest body could never be read")
        return self

    def per_worker(self, cpus: int) -> Settings:
        """The settings of one worker: its part of the `cpus` (at least one) and of what holds for all together.

        Raises:
            SettingsError: a part is too small to serve what one request may hold.
        """
        threads = min(self.threads or cpus, cpus)
        part = {name: getattr(self, name) // self.workers for name in _DIVIDED}
        part["threads"] = max(1, threads // self.workers)
        part["decode_threads"] = max(1, (self.decode_threads or threads) // self.workers)
        try:
            return Settings(**(self.model_dump() | part | {"workers": 1}))
        except ValidationError as error:
            parts = ", ".join(f"{name} {part[name]}" for name in _DIVIDED)
            reasons = "; ".join(_explain(problem) for problem in error.errors())
            raise SettingsError(
                f"setting workers ({ENV_PREFIX}WORKERS): each of {self.workers} would get {parts}; {reasons}"
            ) from error


def load_settings(**flags: Any) -> Settings:
    """The settings from flags (those that are not None), the environment and the defaults, in this order.

    Raises:
        SettingsError: a value cannot be used; the message names the setting and says why.
    """
    given = {name: value for name, value in flags.items() if value is not None}
    try:
        return Settings(**given)
    except ValidationError as error:
        raise SettingsError("; ".join(_explain(problem) for problem in error.errors())) from error


def _explain(problem: Any) -> str:
    name = str(problem["loc"][0]) if problem["loc"] else ""
    message = str(problem["msg"]).removeprefix("Value error, ")
    return f"setting {name} ({ENV_PREFIX}{name.upper()}): {message}" if name else f"settings: {message}"
