"""The domain of a model: a Gaussian mixture over statistics of the pictures that it is fitted on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from service.answers import Domain, read_domain
from service.errors import needs
from service.evaluation.calibrating.spread import spread

STATISTICS: Final = ("color_count", "color_concentration", "tone_concentration", "coarse_gradient")
"""How complex a picture is. Of the sets that were measured (brightness and sharpness; all eight) these four tell
photographs from drawings best, and do so with ruined drawings inside, which are to be answered `unanswerable`."""
COMPONENTS: Final = (1, 2, 4, 8, 16)
"""Sizes of mixture to choose from."""
PICTURES_A_COMPONENT: Final = 50
MIN_PICTURES: Final = PICTURES_A_COMPONENT
MIN_RUINED: Final = 100
INSIDE: Final = 0.995
"""Share of the pictures that shall lie inside."""

_FOLDS: Final = 5
_DIGITS: Final = 6
# Keeps a component from shrinking onto a few pictures that are alike; of standardised statistics.
_SMALLEST_VARIANCE: Final = 1e-2

Floats = NDArray[np.float64]


def fit_domain(
    statistics: Sequence[Mapping[str, float]], ruined: Sequence[bool] = ()
) -> tuple[dict[str, Any] | None, dict[str, Any]]:
    """Fit a domain to pictures.

    Ruined ones (dark, blank, noise) belong to it where there are enough of them to tell their kinds. A few would only
    stretch it: with 18 of them among 108 pictures of a line camera 2 % of photographs were noticed, without them 96 %.

    The number of components is the one under which pictures that were left out are likeliest; the threshold is the
    quantile of the scores of pictures that were left out.

    Args:
        statistics: of each picture.
        ruined: whether nothing can be answered from each; by default of none.

    Returns:
        The domain in its JSON form, None where there are too few pictures; and a report.

    Raises:
        MissingExtraError: scikit-learn is not installed.
    """
    if ruined and sum(ruined) < MIN_RUINED:
        statistics = [each for each, spoilt in zip(statistics, ruined, strict=True) if not spoilt]
    if len(statistics) < MIN_PICTURES:
        return None, {"pictures": len(statistics), "why_not": f"{len(statistics)} pictures, {MIN_PICTURES} needed"}
    order = np.random.default_rng(0).permutation(len(statistics))
    rows = [statistics[int(k)] for k in order]
    sizes = [k for k in COMPONENTS if k * PICTURES_A_COMPONENT <= len(rows) or k == 1]
    scores = {k: _left_out(rows, k) for k in sizes}
    best = min(sizes, key=lambda k: float(np.mean(scores[k])))
    threshold = float(np.quantile(scores[best], INSIDE))
    domain = _mixture(rows, best) | {"threshold": round(threshold, _DIGITS)}
    report = {
        "pictures": len(rows),
        "components": best,
        "threshold": domain["threshold"],
        "left_out_negative_log_likelihood": {str(k): round(float(np.mean(s)), 4) for k, s in scores.items()},
    }
    return domain, report


def scores(domain: Domain, statistics: Sequence[Mapping[str, float]]) -> Floats:
    """The score of each picture."""
    return np.array([domain.score(each) for each in statistics], dtype=np.float64)


def _left_out(rows: Sequence[Mapping[str, float]], components: int) -> Floats:
    """The score of each picture under a mixture fitted without it, in five parts."""
    found = []
    for fold in range(_FOLDS):
        kept = [row for k, row in enumerate(rows) if k % _FOLDS != fold]
        domain = read_domain(_mixture(kept, components) | {"threshold": 0.0}, "domain")
        found.append(scores(domain, rows[fold::_FOLDS]))
    return np.concatenate(found)


def _mixture(rows: Sequence[Mapping[str, float]], components: int) -> dict[str, Any]:
    with needs("scikit-learn"):
        from sklearn.mixture import GaussianMixture
    values = np.array([[row[name] for name in STATISTICS] for row in rows])
    center, scale = values.mean(axis=0), spread(values)
    fitted = GaussianMixture(components, reg_covar=_SMALLEST_VARIANCE, random_state=0, max_iter=300, n_init=2)
    fitted.fit((values - center) / scale)
    parts = {
        "center": center,
        "scale": scale,
        "weights": fitted.weights_,
        "means": fitted.means_,
        "factors": fitted.precisions_cholesky_,
    }
    return {
        "kind": "gaussian_mixture",
        "pictures": len(rows),
        "statistics": list(STATISTICS),
        **{name: _told(part.tolist()) for name, part in parts.items()},
    }


def _told(value: Any) -> Any:
    """Numbers in nested lists with as many significant digits as are told: none becomes 0 that is not."""
    return [_told(each) for each in value] if isinstance(value, list) else float(f"{value:.{_DIGITS}g}")
