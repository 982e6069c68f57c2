"""Types of options whose values need more than click's own checks."""

from __future__ import annotations

import math
from string import Formatter
from typing import Any

import click


class Place(click.Path):
    """A path; not the empty one, which would be the current folder."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The value, or an error of usage."""
        if value == "":
            self.fail("it is empty", param, ctx)
        return super().convert(value, param, ctx)


class Filled(click.types.StringParamType):
    """A text that is not empty, as one of a variable that is not set would be."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The value, or an error of usage."""
        if not value:
            self.fail("it is empty", param, ctx)
        return str(value)


class Template(Filled):
    """A picture's name with plain fields in braces."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The value, or an error of usage."""
        text = super().convert(value, param, ctx)
        try:
            for _, field, spec, _ in Formatter().parse(text):
                if field is not None and (not field.isidentifier() or "{" in (spec or "")):
                    self.fail(f"{{{field}}} is no plain field", param, ctx)
        except ValueError as error:
            self.fail(f"{text!r}: {error}", param, ctx)
        return text


class Seconds(click.FloatRange):
    """A number of seconds."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The value, or an error of usage."""
        seconds = super().convert(value, param, ctx)
        if math.isnan(seconds):
            self.fail("it is no number", param, ctx)
        return seconds
