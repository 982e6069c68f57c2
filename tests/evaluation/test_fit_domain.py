"""The fitted domain: a density of scikit-learn's, a threshold that leaves one picture in 200 outside."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from service.answers import read_domain
from service.evaluation.calibrating.domain import INSIDE, MIN_PICTURES, STATISTICS, fit_domain, scores
from service.images import STATISTICS as ALL


def pictures(points: np.ndarray) -> list[dict[str, float]]:
    """Pictures with these values of the four statistics, and others of no concern."""
    return [dict.fromkeys(ALL, 99.0) | dict(zip(STATISTICS, row, strict=True)) for row in points.tolist()]


def normal(n: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal([3, 0, -1, 2], [0.5, 1, 2, 0.1], (n, 4))


def test_one_normal_distribution() -> None:
    points = normal(390)
    body, report = fit_domain(pictures(points))
    domain = read_domain(json.loads(json.dumps(body)), "domain")
    assert report["components"] == 1
    assert report["pictures"] == body["pictures"] == 390
    assert (domain.statistics, domain.threshold) == (STATISTICS, report["threshold"])
    assert body["center"] == pytest.approx(list(points.mean(axis=0)), rel=1e-5)
    assert body["scale"] == pytest.approx(list(points.std(axis=0)), rel=1e-5)
    fresh = normal(5000, 1)
    found = scores(domain, pictures(fresh))
    # The likeliest normal distribution, each variance a little larger.
    z, fitted_to = ((each - points.mean(axis=0)) / points.std(axis=0) for each in (fresh, points))
    expected = multivariate_normal(np.zeros(4), np.cov(fitted_to.T, bias=True) + 0.01 * np.eye(4))
    assert found == pytest.approx(-expected.logpdf(z), abs=1e-3)
    # Of pictures of the same kind 0.5 % lie outside; the threshold is that of few.
    assert (found > domain.threshold).mean() < 4 * (1 - INSIDE)
    far = normal(200, 2)
    far[:, 0] += 5
    assert all(domain.outside(each) for each in pictures(far))


def test_two_kinds_of_pictures_and_nothing_between() -> None:
    rng = np.random.default_rng(3)
    points = np.concatenate([rng.normal(-2, 0.6, (90, 4)), rng.normal(2, 0.6, (90, 4))])
    body, report = fit_domain(pictures(points))
    assert report["components"] == 2
    assert body["weights"] == pytest.approx([0.5, 0.5], abs=0.01)
    assert min(report["left_out_negative_log_likelihood"], key=report["left_out_negative_log_likelihood"].get) == "2"
    domain = read_domain(body, "domain")
    assert domain.outside(pictures(np.zeros((1, 4)))[0])
    assert not domain.outside(pictures(np.full((1, 4), 2.0))[0])
    assert not domain.outside(pictures(np.full((1, 4), -2.0))[0])


@pytest.mark.parametrize("n", [0, 1, MIN_PICTURES - 1])
def test_few_pictures_give_no_domain(n: int) -> None:
    body, report = fit_domain(pictures(normal(n)))
    assert body is None
    assert report["pictures"] == n
    assert str(MIN_PICTURES) in report["why_not"]


@pytest.mark.parametrize(("spoilt", "kept"), [(99, 0), (100, 100)])
def test_ruined_pictures_belong_to_it_where_there_are_enough_of_them(spoilt: int, kept: int) -> None:
    given = pictures(np.concatenate([normal(150), normal(spoilt) + 20]))
    body, report = fit_domain(given, [False] * 150 + [True] * spoilt)
    assert report["pictures"] == body["pictures"] == 150 + kept
    domain = read_domain(body, "domain")
    assert np.mean([domain.outside(each) for each in given[150:]]) == pytest.approx(0.0 if kept else 1.0, abs=0.05)


@pytest.mark.parametrize(("n", "sizes"), [(MIN_PICTURES, ["1"]), (99, ["1"]), (100, ["1", "2"])])
def test_a_component_needs_its_pictures(n: int, sizes: list[str]) -> None:
    _, report = fit_domain(pictures(normal(n)))
    assert list(report["left_out_negative_log_likelihood"]) == sizes
    assert all(math.isfinite(value) for value in report["left_out_negative_log_likelihood"].values())


def test_the_same_pictures_give_the_same_domain() -> None:
    given = pictures(normal(100))
    assert fit_domain(given) == fit_domain(given)


def test_a_statistic_that_never_changes() -> None:
    points = normal(80)
    points[:, 3] = 0.0
    body, _ = fit_domain(pictures(points))
    assert body["scale"][3] == 1.0
    domain = read_domain(body, "domain")
    assert sum(domain.outside(each) for each in pictures(points)) <= 2
    points[:, 3] = 5.0
    assert all(domain.outside(each) for each in pictures(points))


@pytest.mark.parametrize("value", [0.1, 1.7])
def test_a_statistic_whose_mean_rounds(value: float) -> None:
    points = normal(80)
    points[:, 3] = value  # its standard deviation is 1e-17, not 0
    assert fit_domain(pictures(points))[0] is not None


@pytest.mark.filterwarnings("ignore:Number of distinct clusters")
def test_many_copies_of_few_pictures() -> None:
    assert fit_domain(pictures(np.tile(normal(3), (70, 1))))[0] is not None
