"""Questions that are drawn: their rates, means and identities."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from loadtest.simulation.measured import Measured
from loadtest.simulation.workload import Crowd, Workload, generate, zipf


def test_zipf_by_hand() -> None:
    # 1, 1/2, 1/3 over 11/6.
    assert zipf(3, 1.0) == pytest.approx([6 / 11, 3 / 11, 2 / 11])


def test_arrivals_have_the_rate_and_the_variance_of_poisson(measured: Measured) -> None:
    questions = generate(Workload(100.0, 1_000.0), measured, 1)
    a_second = np.bincount(questions.at.astype(int), minlength=1_000)
    # The mean of 1,000 Poisson counts of 100: five standard errors are 1.6; the index of dispersion is 1 +- 0.045.
    assert a_second.mean() == pytest.approx(100, abs=1.6)
    assert a_second.var() / a_second.mean() == pytest.approx(1.0, abs=0.23)
    assert (np.diff(questions.at) >= 0).all()


def test_the_day_and_the_crowd_change_the_rate(measured: Measured) -> None:
    crowd = Crowd(600.0, 100.0, 4.0, viral_share=0.5, size="4032x3024")
    workload = Workload(50.0, 1_200.0, swing=0.5, day_s=1_200.0, crowd=crowd)
    # Lowest at the start, highest in the middle, by hand.
    assert [workload.rate(at) for at in (0.0, 300.0, 600.0)] == pytest.approx([25.0, 50.0, 4 * 75.0])
    questions = generate(workload, measured, 2)
    inside = (questions.at >= 600) & (questions.at < 700)
    assert inside.sum() == pytest.approx(100 * 4 * 75, rel=0.05)
    assert ((questions.at >= 250) & (questions.at < 350)).sum() == pytest.approx(100 * 50, rel=0.08)
    # Three quarters of those inside came in addition, half of them about one picture.
    _, counts = np.unique(questions.picture[inside], return_counts=True)
    assert counts.max() / inside.sum() == pytest.approx(3 / 8, abs=0.02)
    assert (questions.pixels[inside] == 4032 * 3024).mean() == pytest.approx(0.75 + 0.25 * 0.1, abs=0.02)


def test_sessions_ask_a_geometric_number_of_questions_about_one_picture(measured: Measured) -> None:
    questions = generate(Workload(100.0, 2_000.0, questions=4.0, think_s=1.0), measured, 3)
    _, counts = np.unique(questions.picture, return_counts=True)
    assert counts.mean() == pytest.approx(4.0, rel=0.03)
    # P(1) of a geometric distribution with mean 4.
    assert (counts == 1).mean() == pytest.approx(0.25, abs=0.02)
    assert len(np.unique(questions.key)) == len(questions)


def test_together_means_at_the_same_moment(measured: Measured) -> None:
    questions = generate(Workload(100.0, 100.0, questions=4.0, think_s=0.0), measured, 3)
    for picture in np.unique(questions.picture)[:50]:
        assert len(np.unique(questions.at[questions.picture == picture])) == 1


def test_popular_pictures_follow_zipf(measured: Measured) -> None:
    workload = Workload(100.0, 1_000.0, popular_share=0.5, pictures=100, exponent=1.0, common=5)
    questions = generate(workload, measured, 4)
    popular = questions.picture < 100
    assert popular.mean() == pytest.approx(0.5, abs=0.01)
    counts = np.bincount(questions.picture[popular], minlength=100) / popular.sum()
    assert counts[:3] == pytest.approx(zipf(100, 1.0)[:3], rel=0.05)
    assert len(np.unique(questions.key[questions.picture == 0])) == 5
    # A picture has one size, whoever asks about it.
    assert len(np.unique(questions.pixels[questions.picture == 0])) == 1


def test_shares_of_sizes_and_deadlines(measured: Measured) -> None:
    questions = generate(Workload(100.0, 1_000.0), measured, 5)
    assert (questions.pixels == 640 * 480).mean() == pytest.approx(0.6, abs=0.01)
    assert (questions.due - questions.at).round(6).tolist().count(10.0) / len(questions) == pytest.approx(0.2, abs=0.01)


def test_a_seed_gives_the_same_again(measured: Measured) -> None:
    workload = Workload(10.0, 100.0, questions=2.0, popular_share=0.3)
    one, same, other = (generate(workload, measured, seed) for seed in (1, 1, 2))
    for name in (field.name for field in dataclasses.fields(one)):
        assert (getattr(one, name) == getattr(same, name)).all()
    assert len(one) != len(other) or (one.at != other.at).any()


def test_a_session_has_a_question(measured: Measured) -> None:
    with pytest.raises(ValueError, match="at least one question"):
        generate(Workload(1.0, 1.0, questions=0.5), measured, 0)
