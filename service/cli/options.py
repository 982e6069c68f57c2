"""Command-line options made from the settings, so that every knob is a flag and none is described twice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeVar, get_args, get_origin

import click

from service.settings import ENV_PREFIX, Settings

Command = TypeVar("Command", bound=Callable[..., Any])


def settings_options(*names: str) -> Callable[[Command], Command]:
    """A decorator that adds an option for each setting named (all of them where none is).

    An option that is not given is None, so that the environment and then the default decide.
    """

    def decorate(command: Command) -> Command:
        for name in reversed(names or tuple(Settings.model_fields)):
            field = Settings.model_fields[name]
            default = "" if field.default is None else f", default {field.default}"
            command = click.option(
                f"--{name.replace('_', '-')}",
                name,
                type=_click_type(field.annotation),
                default=None,
                help=f"{field.description} [{ENV_PREFIX}{name.upper()}{default}]",
            )(command)
        return command

    return decorate


def _click_type(annotation: Any) -> Any:
    if get_origin(annotation) is Literal:
        return click.Choice(get_args(annotation))
    # The value itself is checked by the settings, which name the setting in their message.
    return {int: click.INT, float: click.FLOAT}.get(annotation, click.STRING)
