"""The contract's shapes: what requests may hold and what replies do hold. The OpenAPI document is made from them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from service.answers import MAX_CHOICES
from service.gateway.question import DEFAULT_TOP_K, MAX_TOP_K
from service.settings import Policy, Priority

Probability = Annotated[float, Field(ge=0, le=1)]


class _Request(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class ImageBase64(_Request):
    """A picture as base64: either alphabet, padding optional, line breaks ignored."""

    base64: str


class ImageUrl(_Request):
    """A picture's address. Fetching is switched off on this server: 403 `url_not_allowed`."""

    url: str


DataUrl = Annotated[str, StringConstraints(pattern=r"^[dD][aA][tT][aA]:")]


class _Options(_Request):
    choices: list[str] | None = Field(
        None, min_length=1, max_length=MAX_CHOICES, description="The only answers allowed."
    )
    answer_set: str | None = Field(
        None,
        max_length=100,
        description="A named set instead of choices: `yes-no`, `numbers`, `colors`, or `open`.",
    )
    policy: Policy | None = Field(None, description="Which way the question goes; absent: the server's.")
    model: str | None = Field(None, max_length=200, description="A model by name; absent: the configured one.")
    max_risk: Probability | None = Field(
        None,
        description="Abstain where the risk of a wrong answer may exceed this. Needs a calibrated model.",
    )
    top_k: int | None = Field(
        None, ge=1, le=MAX_TOP_K, description=f"Most candidates in the reply; absent: {DEFAULT_TOP_K}."
    )


class QuestionItem(_Options):
    """One question with its options."""

    question: str = Field(description="What is asked about the picture.")


class _Shared(_Request):
    timeout_ms: int | None = Field(None, ge=1, description="Deadline in milliseconds, from when the body has arrived.")
    priority: Priority | None = Field(
        None, description="Absent: interactive. batch waits behind every interactive question and is refused first."
    )


class AnswerBody(QuestionItem, _Shared):
    """A request of `POST /answer` without its picture."""


class AnswersBody(_Options, _Shared):
    """A request of `POST /answers` without its picture. Options beside `questions` hold for each that has none."""

    questions: list[Any] = Field(min_length=1, description="Questions: strings, or objects with options of their own.")


class AnswerRequest(AnswerBody):
    """`POST /answer` as JSON."""

    image: ImageBase64 | ImageUrl | DataUrl


class AnswersRequest(AnswersBody):
    """`POST /answers` as JSON."""

    image: ImageBase64 | ImageUrl | DataUrl
    questions: list[str | QuestionItem] = Field(min_length=1)


class _Reply(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Candidate(_Reply):
    """An answer with the model's own probability of it (never the calibrated confidence)."""

    answer: str
    probability: Probability


class Notice(_Reply):
    """A stable code and a sentence for a person."""

    code: str
    message: str


class RouteReply(_Reply):
    """Which way the question went, and why."""

    policy: Policy
    reason: str


class ModelReply(_Reply):
    """Which model answered; `calibration` is the id of its fitted data, null where nothing is fitted."""

    id: str
    revision: str
    calibration: str | None


class ImageReply(_Reply):
    """The picture's identity and its upright size in pixels."""

    sha256: str
    width: int
    height: int


class Timings(_Reply):
    """Milliseconds: decoding (waiting for it included), waiting for the model, inference, and all together."""

    decode: float
    queue: float
    inference: float
    total: float


class AnswerReply(_Reply):
    """The reply to one question."""

    id: str
    answer: str | None = Field(description="Null where the service abstained.")
    confidence: Probability | None = Field(
        description="Calibrated probability that the answer is right (expected VQA accuracy); null if not calibrated."
    )
    calibrated: bool
    answerable: bool | None = Field(
        description="Null where the model has no way to say so, as of a picture outside its domain."
    )
    answerability: Probability | None
    abstained: bool
    candidates: list[Candidate]
    off_set: Probability | None = Field(description="Mass that the model would have put outside the answer set.")
    raw_answer: str | None = Field(
        description="The model's own spelling of what was decided on; null where it has none."
    )
    answer_type: Literal["yes/no", "number", "other", "unanswerable"]
    hints: list[Notice] = Field(
        description="What the person who took the picture should know. `outside_model_domain`: it is not of the kind "
        "that the model knows, and the answer is held back."
    )
    backend: Literal["classifier", "generator"]
    route: RouteReply
    model: ModelReply
    image: ImageReply
    cached: bool
    warnings: list[Notice]
    timings_ms: Timings


class ProblemDocument(BaseModel):
    """RFC 9457 problem document. `code` is stable; `field` names the request field at fault."""

    model_config = ConfigDict(extra="allow")

    type: str
    title: str
    status: int
    detail: str
    code: str
    request_id: str
    field: str | None = None


class ResultItem(_Reply):
    """A question that was answered."""

    result: AnswerReply


class ProblemItem(_Reply):
    """A question that was not."""

    problem: ProblemDocument


class AnswersReply(_Reply):
    """The reply to many questions about one picture, in their order."""

    id: str
    results: list[ResultItem | ProblemItem]


class Live(_Reply):
    """The process runs."""

    status: Literal["ok"]


class BackendState(_Reply):
    """A backend's state, and why it is not ready."""

    state: Literal["starting", "ready", "failed", "stopped"]
    detail: str


class Ready(_Reply):
    """Whether questions are answered now, and the state of each backend."""

    status: Literal["ready", "not_ready", "draining"]
    backends: dict[str, BackendState]


class ServedModel(_Reply):
    """A model that this server answers with."""

    id: str
    backend: Literal["classifier", "generator"]
    revision: str
    calibration: str | None
    demo: bool
    state: Literal["starting", "ready", "failed", "stopped"]


class Models(_Reply):
    """The models that are served."""

    models: list[ServedModel]
