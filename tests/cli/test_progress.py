"""How far long work is, away from a terminal."""

from __future__ import annotations

import io

from service.cli.progress import Lines
from service.evaluation.records import Prediction


def test_a_line_at_most_every_ten_seconds_says_how_far_it_is() -> None:
    stream, now = io.StringIO(), 100.0
    lines = Lines(stream, lambda: now)
    lines.begin("sighted", 12_000, 400)
    for second in range(1, 26):
        now = 100.0 + second
        for _ in range(100):
            lines.advance(Prediction(1, error="image_truncated" if second == 3 else None))
    lines.end()
    lines.begin("blank", 12_000, 0)
    lines.advance(Prediction(1))
    lines.end()
    assert stream.getvalue().splitlines() == [
        "sighted: 1,301 of 12,000 questions, 100 failed, 90.1/s",
        "sighted: 2,301 of 12,000 questions, 100 failed, 95.0/s",
    ]
