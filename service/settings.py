"""Every knob of the service, in one object.

A setting is given by a flag of `vqa serve`, else by `VQA_<NAME>` in the environment, else by its default. A value that
cannot be used refuses to start and names the setting.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError, field_validator, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from service.errors import SettingsError

MIB = 1024 * 1024
Policy = Literal["auto", "classifier", "generator", "cascade"]
Priority = Literal["interactive", "batch"]
ENV_PREFIX = "VQA_"
_PACKAGE_PARENT = Path(__file__).resolve().parent.parent


class Settings(BaseSettings):
    """All settings. Read once at start, never changed afterwards."""

    # An empty variable is one that is not set: an empty host would mean every interface.
    model_config = SettingsConfigDict(env_prefix=ENV_PREFIX, env_ignore_empty=True, frozen=True, extra="ignore")

    # the door
    host: str = Field("127.0.0.1", min_length=1, description="Address to listen on.")
    port: int = Field(8000, ge=0, le=65535, description="Port to listen on; 0 takes any free one.")
    log_level: Literal["debug", "info", "warning", "error"] = Field("info", description="Least level that is logged.")
    log_format: Literal["text", "json"] = Field("text", description="One line a record, for people or for programs.")
    drain_timeout_s: float = Field(20.0, ge=0, le=3600, description="Seconds that accepted requests get after SIGTERM.")

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

    @model_validator(mode="after")
    def _consistent(self) -> Settings:
        if self.max_questions > self.max_in_flight:
            raise ValueError("max_questions may not exceed max_in_flight: such a request could never be admitted")
        if self.default_timeout_ms > self.max_timeout_ms:
            raise ValueError("default_timeout_ms may not exceed max_timeout_ms")
        if self.max_buffered_bytes < self.max_body_bytes:
            raise ValueError("max_buffered_bytes may not be below max_body_bytes: the largest body could never be read")
        return self


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
