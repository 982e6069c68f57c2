"""A row from outside (a journal's line, a server's reply) as a prediction, its types and ranges checked."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Annotated, Any, Final, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

from service.evaluation.records import Prediction

_SHARES = ("confidence", "answerability", "off_set")
_AT_LEAST_0 = ("width", "height", "decode_ms", "queue_ms", "inference_ms", "total_ms")


def _fields() -> dict[str, Any]:
    """Type and default of each field; a share is within 0 and 1, a size or a time not below 0."""
    hints: dict[str, Any] = get_type_hints(Prediction)
    hints |= {name: Annotated[float, Field(ge=0, le=1)] | None for name in _SHARES}
    hints |= {name: Annotated[hints[name], Field(ge=0)] for name in _AT_LEAST_0}
    hints["candidates"] = tuple[tuple[str, Annotated[float, Field(ge=0, le=1)]], ...]
    return {
        field.name: (hints[field.name], ... if field.default is dataclasses.MISSING else field.default)
        for field in dataclasses.fields(Prediction)
    }


_CONFIG: Final = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False, protected_namespaces=())
_ROW: Final[type[BaseModel]] = create_model("Row", __config__=_CONFIG, **_fields())


def prediction(row: Mapping[str, Any]) -> Prediction:
    """A prediction of these values; tuples may be lists, and what is left out is as by default.

    Raises:
        ValueError: a value is of another type or out of range; the message names it.
    """
    values = dict(row)
    if isinstance(values.get("candidates"), list):
        values["candidates"] = tuple(tuple(c) if isinstance(c, list) else c for c in values["candidates"])
    for codes in ("warnings", "hints"):
        if isinstance(values.get(codes), list):
            values[codes] = tuple(values[codes])
    try:
        _ROW.model_validate(values)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        raise ValueError(f"{'.'.join(map(str, first['loc'][:1]))}: {first['msg']}") from error
    return Prediction(**values)
