"""Ways to tell pictures that a model does not know, compared: `python -m models.vilt.domain_study MODEL --real DIR`.

Each way is fitted on half of the pictures of the calibration split, the ruined ones among them, and flags what scores
above the 99.5% quantile of the other half. Photographs are measured on, never fitted to; but the way that is used was
chosen with these figures in view. Prints a table: the share of
pictures flagged in each set, in percent. Needs the extra `eval`.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageEnhance, ImageFilter
from sklearn.covariance import LedoitWolf
from sklearn.mixture import GaussianMixture

from models.shapes.examples import Split, draw_split
from models.vilt import easyvqa
from service.answers import read_domain
from service.backends.layout import Way
from service.backends.manifest import read_manifest
from service.backends.vilt import ViltModel
from service.evaluation.calibrating.domain import INSIDE, fit_domain
from service.evaluation.calibrating.domain import STATISTICS as CHOSEN
from service.images import STATISTICS, decode_image, picture_statistics

Array = np.ndarray
Scorer = Callable[[Array], Array]
"""Rows of features to scores; the larger, the further outside."""

QUESTION = "what shape is in the image?"
APPEARANCE = ("brightness", "contrast", "sharpness", "saturation", "color_count")
PICTURES = 3000


def picture_sets(real: Path | None, pictures: int) -> dict[str, list[Image.Image]]:
    """The sets, by name; "calibration" is what is fitted to."""
    sets: dict[str, list[Image.Image]] = {"calibration": [], "drawn test": [], "ruined test": []}
    for split in (Split.CALIBRATION, Split.TEST):
        for example in draw_split(split, 0, pictures, questions=1):
            ruined = split is Split.TEST and example.damage is not None
            name = "calibration" if split is Split.CALIBRATION else "ruined test" if ruined else "drawn test"
            sets[name].append(Image.fromarray(example.pixels))
    train, test = easyvqa.load("train"), easyvqa.load("test")
    sets["calibration"] += [Image.fromarray(train.pixels[k]) for k in easyvqa.held_out(len(train.pixels))[1]]
    sets["easy-VQA test"] = [Image.fromarray(pixels) for pixels in test.pixels]
    sets |= {"text": list(_texts(200)), "line charts": list(_charts(200))}
    if real is not None:
        photographs = [decode_image(path.read_bytes()).picture for path in sorted(real.iterdir())]
        sets["photographs"] = photographs
        sets["photographs, grey"] = [picture.convert("L").convert("RGB") for picture in photographs]
        sets["photographs, blurred"] = [p.filter(ImageFilter.GaussianBlur(0.03 * min(p.size))) for p in photographs]
        sets["photographs, half as bright"] = [ImageEnhance.Brightness(p).enhance(0.5) for p in photographs]
    return sets


def _texts(count: int) -> Iterable[Image.Image]:
    """Dark lines of random letters on pale paper."""
    for seed in range(count):
        rng = np.random.default_rng([1, seed])
        picture = Image.new("RGB", (320, 240), tuple(int(v) for v in rng.integers(225, 256, 3)))
        pen = ImageDraw.Draw(picture)
        for line in range(int(rng.integers(5, 16))):
            letters = "".join(chr(97 + int(k)) if k < 26 else " " for k in rng.integers(0, 31, 44))
            pen.text((12, 10 + 14 * line), letters, fill=tuple(int(v) for v in rng.integers(0, 90, 3)))
        yield picture


def _charts(count: int) -> Iterable[Image.Image]:
    """One to four thin coloured lines over two axes."""
    for seed in range(count):
        rng = np.random.default_rng([2, seed])
        picture = Image.new("RGB", (320, 240), (255, 255, 255))
        pen = ImageDraw.Draw(picture)
        pen.line([(30, 10), (30, 220), (310, 220)], fill=(40, 40, 40), width=2)
        for _ in range(int(rng.integers(1, 5))):
            heights = np.clip(120 + np.cumsum(rng.normal(0, 14, 28)), 15, 215)
            points = [(32 + 10 * k, float(h)) for k, h in enumerate(heights)]
            pen.line(points, fill=tuple(int(v) for v in rng.integers(0, 200, 3)), width=2)
        yield picture


def logits_of(model: ViltModel, pictures: Sequence[Image.Image]) -> Array:
    """(pictures, labels): what the model makes of each, asked for its shape."""
    ids = model.tokenizer.encode(QUESTION).ids
    items = [model.item(model.processor(picture), ids) for picture in pictures]
    return np.concatenate([model.logits([item], Way.WIDE) for item in items]).astype(np.float64)


def statistics_of(pictures: Sequence[Image.Image]) -> Array:
    """(pictures, statistics)."""
    return np.array([[picture_statistics(picture)[name] for name in STATISTICS] for picture in pictures])


def energy(_fitted_on: Array) -> Scorer:
    """Negative log-sum-exp of the logits (Liu et al. 2020)."""
    return lambda rows: -np.logaddexp.reduce(rows, axis=1)


def unsure(_fitted_on: Array) -> Scorer:
    """One minus the largest softmax probability (Hendrycks and Gimpel 2017)."""
    return lambda rows: 1 - np.exp(rows.max(axis=1) - np.logaddexp.reduce(rows, axis=1))


def mahalanobis(fitted_on: Array) -> Scorer:
    """Squared Mahalanobis distance with a shrunk covariance (Lee et al. 2018, without classes)."""
    return LedoitWolf().fit(fitted_on).mahalanobis


def mixture(components: int) -> Callable[[Array], Scorer]:
    """Negative log-likelihood under a Gaussian mixture of standardised features."""

    def fit(fitted_on: Array) -> Scorer:
        center, scale = fitted_on.mean(axis=0), fitted_on.std(axis=0)
        found = GaussianMixture(components, reg_covar=1e-2, random_state=0, max_iter=300, n_init=2)
        found.fit((fitted_on - center) / scale)
        return lambda rows: -found.score_samples((rows - center) / scale)

    return fit


def flagged(features: dict[str, Array], fit: Callable[[Array], Scorer]) -> dict[str, float]:
    """The share of each set that a way flags, in percent."""
    rows = features["calibration"][np.random.default_rng(0).permutation(len(features["calibration"]))]
    score = fit(rows[::2])
    threshold = np.quantile(score(rows[1::2]), INSIDE)
    return {name: 100 * float((score(f) > threshold).mean()) for name, f in features.items() if name != "calibration"}


def served(statistics: dict[str, Array]) -> dict[str, float]:
    """What `vqa calibrate` makes of the whole calibration split: size and threshold by pictures left out in turn."""
    named = {name: [dict(zip(STATISTICS, row, strict=True)) for row in rows] for name, rows in statistics.items()}
    domain = read_domain(fit_domain(named.pop("calibration"))[0], "domain")
    return {name: 100 * float(np.mean([domain.outside(row) for row in rows])) for name, rows in named.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="model folder")
    parser.add_argument("--real", type=Path, metavar="DIR", help="folder of photographs")
    parser.add_argument("--pictures", type=int, default=PICTURES, help="drawn for each split; default 3000")
    given = parser.parse_args()
    sets = picture_sets(given.real, given.pictures)
    model = ViltModel.open(read_manifest(given.folder), "cpu", 0, {Way.WIDE: 1})
    logits = {name: logits_of(model, pictures) for name, pictures in sets.items()}
    statistics = {name: statistics_of(pictures) for name, pictures in sets.items()}

    def some(names: Sequence[str]) -> dict[str, Array]:
        places = [STATISTICS.index(name) for name in names]
        return {name: rows[:, places] for name, rows in statistics.items()}

    rows = {
        "energy of the logits": flagged(logits, energy),
        "largest softmax probability": flagged(logits, unsure),
        "Mahalanobis distance of the logits": flagged(logits, mahalanobis),
        "all statistics, Mahalanobis": flagged(statistics, mahalanobis),
        "all statistics, mixture of 16": flagged(statistics, mixture(16)),
        "how it was taken, mixture of 16": flagged(some(APPEARANCE), mixture(16)),
        **{f"complexity, mixture of {k}": flagged(some(CHOSEN), mixture(k)) for k in (1, 4, 16)},
        "complexity, as `vqa calibrate` fits it": served(statistics),
    }
    names = [name for name in sets if name != "calibration"]
    print(f"| % flagged | {' | '.join(names)} |\n|{'---|' * (len(names) + 1)}")
    for way, shares in rows.items():
        print(f"| {way} | {' | '.join(f'{shares[name]:.1f}' for name in names)} |")


if __name__ == "__main__":
    main()
