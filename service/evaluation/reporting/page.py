"""Figures to HTML: the templates, and how numbers are written on a page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import service
from service.errors import needs
from service.scoring.scores import leaves

if TYPE_CHECKING:
    import jinja2

NOTHING: Final = "–"
_DIGITS: Final = 12
_SHOWN_ELSEWHERE: Final = frozenset(
    {"dataset", "questions", "accuracy", "per_answer_type", "per_question_type", "notes"}
)


def render(template: str, **values: Any) -> bytes:
    """A page in UTF-8 from a template of this room; every value is escaped.

    Raises:
        MissingExtraError: jinja2 is not installed.
    """
    text = _environment().get_template(template).render(version=service.__version__, **values)
    return text.encode("utf-8", "replace")


@cache
def _environment() -> jinja2.Environment:
    with needs("jinja2"):
        import jinja2
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    filters = (count, facts, metrics, number, percent, plain, rounded, short, signed, tallied)
    environment.filters.update({made.__name__: made for made in filters})
    return environment


def percent(share: float | None) -> str:
    """0.12345 as 12.35, without the sign."""
    return NOTHING if share is None else f"{100 * share:.2f}"


def signed(share: float | None) -> str:
    """As `percent`, with plus or minus; the minus is the mathematical one."""
    if share is None:
        return NOTHING
    text = f"{100 * share:+.2f}"
    return "0.00" if text in ("+0.00", "-0.00") else text.replace("-", "−")


def rounded(percentage: float | None) -> str:
    """A percentage as evaluators print it, with two places."""
    return NOTHING if percentage is None else f"{percentage:.2f}"


def number(value: float | None) -> str:
    """Four places."""
    return NOTHING if value is None else f"{value:.4f}"


def count(value: int) -> str:
    """Thousands apart."""
    return f"{value:,}"


def short(value: float) -> str:
    """Three significant digits, without needless zeros; whole numbers whole."""
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def plain(value: object) -> str:
    """A number as the official code rounded it, or any other value of JSON."""
    if value is None:
        return NOTHING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(map(plain, value)) or NOTHING
    return f"{value:.10g}" if isinstance(value, float) else str(value)


def tallied(answers: Sequence[str]) -> str:
    """What people said, most often first: `yes (8), no (2)`; letters of other directions are kept apart."""
    if not answers:
        return NOTHING
    # First-strong isolates: an Arabic answer must not turn the brackets around it.
    said = Counter(answers).most_common()
    return ", ".join(f"\u2068{answer}\u2069" + (f" ({times})" if len(answers) > 1 else "") for answer, times in said)


def facts(figures: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What was run as names and texts; what run.json does not say is left out."""
    told, digests = figures["run"]["facts"], figures["run"]["fingerprint"].get("files", {})
    rows = [
        ("data set", figures["dataset"]),
        ("VQA code", figures["scores"][figures["main_view"]].get("code")),
        *((model["backend"] or "model", _model(model)) for model in figures["models"]),
        ("views", ", ".join(view["view"] for view in figures["views"])),
        ("asked at", told.get("place")),
        *((f"{name} file", f"{path} ({_digest(digests.get(name))})") for name, path in told.get("files", {}).items()),
        ("vqa version", told.get("version")),
        ("questions", told.get("questions")),
        ("pictures at once", told.get("concurrency")),
    ]
    return [(name, count(value) if isinstance(value, int) else str(value)) for name, value in rows if value is not None]


def _model(model: Mapping[str, Any]) -> str:
    parts = [
        model["model"] or NOTHING,
        *(f"{name} {model[name]}" for name in ("revision", "calibration") if model[name]),
    ]
    return f"{', '.join(parts)}: {count(model['questions'])} answers"


def _digest(digest: object) -> str:
    """The first digits of a file's SHA-256; of a folder's files, how many there are."""
    return f"{len(digest)} files" if isinstance(digest, Mapping) else f"SHA-256 {str(digest)[:_DIGITS]}…"


def metrics(scores: Mapping[str, Mapping[str, Any]]) -> list[tuple[str, dict[str, Any]]]:
    """The data set's own metrics, one a row, with their value in each view; those that are single numbers."""
    rows: dict[str, dict[str, Any]] = {}
    for view, document in scores.items():
        for name, value in leaves({k: v for k, v in document.items() if k not in _SHOWN_ELSEWHERE}, " / "):
            if isinstance(value, int | float):
                rows.setdefault(name, {})[view] = value
    return list(rows.items())
