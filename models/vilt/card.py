"""The figures of a model card, written from what was measured, so that the two cannot differ."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

HEADING = "## Figures\n"
_TOPICS = {
    "present": "is there a …",
    "absent": "is there no …",
    "color": "colour",
    "shape": "shape",
    "yes/no": "yes/no",
    "yes/no negated": "yes/no, negated",
    "shape_of_color": "shape of a colour",
    "is_color": "is the … red",
    "is_shape": "is it a circle",
    "count": "how many",
    "object_present": "is there a (everyday object)",
    "degraded": "ruined picture (unanswerable)",
    "false_premise": "false premise (unanswerable)",
    "off_topic": "off topic (unanswerable)",
}


def with_figures(card: str, report: Mapping[str, Any]) -> str:
    """The card with its section of figures written anew from the content of evaluation.json.

    Raises ValueError for a card without such a section.
    """
    before, heading, rest = card.partition(HEADING)
    if not heading:
        raise ValueError(f"the card has no section {HEADING.strip()!r}")
    _, following, after = rest.partition("\n## ")
    return before + heading + figures(report) + following + after


def figures(report: Mapping[str, Any]) -> str:
    """The section's text: accuracy, unanswerable questions, confidence, parity."""
    official, drawn, parity = report["easy_vqa_test"], report["drawn_test"], report["parity"]
    counts = ", ".join(
        f"{number}: {_percent(value['accuracy'])} of {value['questions']}"
        for number, value in drawn["by_count"].items()
    )
    quality = [
        ("model's own probability, easy-VQA test", official["top_probability"]),
        ("confidence, easy-VQA test", official["confidence"]),
        ("model's own probability, drawn test", drawn["top_probability"]),
        ("confidence, drawn test", drawn["confidence"]),
    ]
    mistakes = ", ".join(f"{name.replace('_', ' ')} {value:.2g}" for name, value in parity["power"].items())
    return f"""\
Answers and confidences as the service gives them (`evaluation.json` holds all figures).

Official easy-VQA test split, {official["questions"]:,} questions: **{_percent(official["accuracy"])}** exact; \
{_percent(official["false_unanswerable"])} were wrongly called unanswerable.
Its pictures are new to the model, its wordings are those of the training split.

{_table(official["by_topic"])}

Drawn test split, {drawn["questions"]:,} questions in wordings and with damages never trained on: \
{_percent(drawn["accuracy"])} exact; unanswerable ones
found {_percent(drawn["unanswerable_recall"])}, answerable ones called unanswerable \
{_percent(drawn["false_unanswerable"])}.

{_table(drawn["by_topic"])}

"How many" by the right count: {counts}.

Confidence against being right (ECE in 15 bins; fitted on {report["calibration"]["questions"]:,} questions of the \
calibration split and on held-out easy-VQA pictures).
A map is kept only where it beats the probability as it is on wordings that it was not fitted on.

| | ECE | Brier |
|---|---|---|
{chr(10).join(f"| {name} | {value['ece']:.4f} | {value['brier']:.4f} |" for name, value in quality)}

ONNX Runtime against stock PyTorch: largest difference of a logit {parity["largest_difference"]:.1e} over \
{len(parity["cases"])} cases of mixed sizes and padding.
Deliberate mistakes show: {mistakes}.
"""


def _percent(share: float) -> str:
    return f"{100 * share:.2f}%"


def _table(topics: Mapping[str, Mapping[str, Any]]) -> str:
    order = [name for name in _TOPICS if name in topics] + [name for name in topics if name not in _TOPICS]
    rows = [
        f"| {_TOPICS.get(name, name)} | {topics[name]['questions']:,} | {_percent(topics[name]['accuracy'])} |"
        for name in order
    ]
    return "\n".join(["| kind | questions | exact |", "|---|---|---|", *rows])
