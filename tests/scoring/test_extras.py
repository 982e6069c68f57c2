"""Without the libraries of the extra `eval`, a metric says what to install."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest

from service.errors import MissingExtraError
from service.scoring.anls import anls
from service.scoring.reliability import risk_coverage
from service.scoring.wups import Wups


@pytest.mark.parametrize(
    ("module", "use"),
    [
        ("rapidfuzz.distance", lambda: anls("a", ["b"])),
        ("sklearn.metrics", lambda: risk_coverage([0.1, 0.2], [0.0, 1.0])),
        ("nltk", Wups),
    ],
)
def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch, module: str, use: Callable[[], object]) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtraError, match=r"comes with the extra \[eval\]"):
        use()
