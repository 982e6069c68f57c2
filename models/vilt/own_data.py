"""A CSV of pictures, questions and answers as data sets: `python -m models.vilt.own_data seal.csv --out data`.

The file's first line names the columns `picture`, `question`, `answer`; pictures are found from the file's folder. Of
several people's answers each is a line of its own, or all stand in one, between upright bars: `red|red|orange`.
Writes train.jsonl, calibration.jsonl and test.jsonl, as `--dataset jsonl` takes them. Pictures are shared out, so that
no picture is in two of them, nor a copy of it; pictures that belong together (of one day, of one part) stay together
where a column `group` says the same for them. Calibration and test get a few pictures more, ruined (dark, blurred,
blank, noise), whose answer is "unanswerable": what training ruins it ruins in other ways. Every picture is read once,
so that a broken one is known at the start.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import io
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from scipy.cluster.hierarchy import DisjointSet

from models.shapes.degrade import degrade
from models.shapes.phrasing import Group
from models.shapes.questions import UNANSWERABLE
from service.errors import DataError
from service.files import read_text, write_whole
from service.images import read_picture

COLUMNS = ("picture", "question", "answer")
GROUP = "group"
BETWEEN = "|"
SHARES: Mapping[str, float] = {"train": 0.7, "calibration": 0.15, "test": 0.15}
RUINED: Mapping[str, Group] = {"calibration": Group.CALIBRATION, "test": Group.TEST}
RUINED_SHARE = 0.2
MIN_PICTURES = 20
# Shorter edge of a ruined picture, in pixels.
SMALLEST, LARGEST = 64, 512


@dataclass(frozen=True)
class Asked:
    """A question about a picture, with the answers of people; one where there is one right answer.

    Pictures of one `group` are kept together; "" is a group of its own for each picture.
    """

    picture: Path
    question: str
    answers: tuple[str, ...]
    group: str = ""

    def row(self) -> dict[str, object]:
        """As JSON Lines have it."""
        return {"image": str(self.picture), "question": self.question, "answers": list(self.answers)}


def read_csv(path: Path) -> list[Asked]:
    """The questions of a CSV file (UTF-8; comma, semicolon or tab), lines of a picture and question taken together.

    Raises:
        DataError: a column or a value is missing, a picture is not there, or it has two groups; the message says in
            which line.
    """
    text = read_text(path)
    first = text.partition("\n")[0]
    delimiter = max(",;\t", key=first.count)  # spreadsheets write what their country uses
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    try:
        return _questions(path, reader)
    except csv.Error as error:
        raise DataError(path, f"not CSV: {error}; is a quote left open?", f"line {reader.line_num}") from error


def _questions(path: Path, reader: Any) -> list[Asked]:
    header = [name.strip().lower() for name in next(reader, [])]
    if missing := [name for name in COLUMNS if name not in header]:
        raise DataError(
            path, f"the first line must name the columns {', '.join(COLUMNS)}; missing: {', '.join(missing)}"
        )
    places = [header.index(name) for name in COLUMNS]
    found: dict[tuple[Path, str], list[str]] = {}
    groups: dict[Path, str] = {}
    for row in reader:
        if not any(value.strip() for value in row):
            continue
        place = f"line {reader.line_num}"
        if len(row) != len(header):
            raise DataError(path, f"{len(row)} values for {len(header)} columns; quote what holds a separator", place)
        picture, question, answer = (row[k].strip() for k in places)
        answers = [each.strip() for each in answer.split(BETWEEN) if each.strip()]
        for name, value in (("picture", picture), ("question", question), ("answer", answers)):
            if not value:
                raise DataError(path, "it is empty", f"{place}, {name}")
        image = Path(os.path.normpath(path.parent.absolute() / picture))
        if not _is_file(image):
            raise DataError(path, f"there is no such file: {image}", f"{place}, picture")
        found.setdefault((image, question), []).extend(answers)
        group = row[header.index(GROUP)].strip() if GROUP in header else ""
        if group and groups.setdefault(image, group) != group:
            raise DataError(path, f"the picture is in group {groups[image]!r} already", f"{place}, {GROUP}")
    if len({image for image, _ in found}) < MIN_PICTURES:
        raise DataError(path, f"it names fewer than {MIN_PICTURES} pictures; that is too few to train and test on")
    return [
        Asked(image, question, tuple(answers), groups.get(image, "")) for (image, question), answers in found.items()
    ]


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False  # a name that no file can have


def split(asked: Sequence[Asked], seed: int) -> dict[str, list[Asked]]:
    """The questions of each part, shared out by pictures in a random order; what belongs together stays together.

    Pictures of one group do, and copies. The largest set is for training; calibration and test share what is left in
    equal parts where that is not enough for both, and have one set each at least.

    Raises:
        DataError: a picture cannot be read; or there are fewer groups than parts.
    """
    sets = _together(asked)
    if len(sets) < len(SHARES):
        raise DataError(
            "the pictures",
            f"they fall into {len(sets)} groups that stay together (copies, or one name in the column {GROUP!r}), and "
            f"{', '.join(SHARES)} need one each",
        )
    waiting = [sets[int(k)] for k in np.random.default_rng(seed).permutation(len(sets))]
    pictures = sum(map(len, waiting))
    parts = {"train": waiting.pop(max(range(len(waiting)), key=lambda k: len(waiting[k])))}
    held = [name for name in SHARES if name != "train"]
    for number, name in enumerate(held):
        others = len(held) - number - 1
        fair = sum(map(len, waiting)) // (others + 1)
        parts[name], waiting = _filled(waiting, min(round(SHARES[name] * pictures), fair), others)
    parts["train"].update(*waiting)
    return {name: [each for each in asked if each.picture in parts[name]] for name in SHARES}


def _together(asked: Sequence[Asked]) -> list[set[Path]]:
    """The pictures in sets that stay together, in an order that depends on the files alone."""
    digests = {path: hashlib.sha256(read_picture(path)[1]).hexdigest() for path in {each.picture for each in asked}}
    joined = DisjointSet(digests)
    first: dict[object, Path] = {}
    for each in asked:
        for mark in (("file", digests[each.picture]), *([(GROUP, each.group)] if each.group else [])):
            joined.merge(each.picture, first.setdefault(mark, each.picture))
    return sorted(joined.subsets(), key=lambda paths: min(digests[path] for path in paths))


def _filled(sets: Sequence[set[Path]], pictures: int, others: int) -> tuple[set[Path], list[set[Path]]]:
    """So many pictures in whole sets, the first that fit, at least one set; and those left, at least `others`."""
    taken: set[Path] = set()
    left, room = [], len(sets) - others
    for each in sets:
        if room and len(taken) + len(each) <= pictures:
            taken, room = taken | each, room - 1
        else:
            left.append(each)
    if not taken:
        taken = left.pop(min(range(len(left)), key=lambda k: len(left[k])))
    return taken, left


def ruined(asked: Sequence[Asked], group: Group, folder: Path, seed: int) -> Iterator[Asked]:
    """A share of the pictures again, ruined, with all their questions; written into a folder.

    Raises:
        DataError: a picture cannot be read, or a ruined one not be written.
    """
    _make(folder)
    pictures = list(dict.fromkeys(each.picture for each in asked))
    rng = np.random.default_rng([seed, list(Group).index(group)])
    chosen = rng.permutation(len(pictures))[: max(1, round(RUINED_SHARE * len(pictures)))]
    for number, k in enumerate(sorted(int(k) for k in chosen)):
        path = folder.absolute() / f"{number:05d}.png"
        spoilt = Image.fromarray(degrade(_pixels(pictures[k]), rng, group)[0])
        try:
            spoilt.save(path)
        except OSError as error:
            raise DataError(path, f"it cannot be written: {error.strerror or error}") from error
        for each in asked:
            if each.picture == pictures[k]:
                yield Asked(path, each.question, (UNANSWERABLE,) * len(each.answers))


def _pixels(picture: Path) -> np.ndarray:
    """A picture of middling size, since damage is a matter of the whole picture: the shorter edge 64 to 512 pixels."""
    upright = read_picture(picture)[0].picture
    shorter = min(upright.size)
    scale = min(max(shorter, SMALLEST), LARGEST) / shorter
    size = round(upright.width * scale), round(upright.height * scale)
    return np.asarray(upright if scale == 1 else upright.resize(size, Image.Resampling.BICUBIC, reducing_gap=2.0))


def write(path: Path, folder: Path, seed: int = 0) -> dict[str, int]:
    """Make the data sets of a CSV file; returns how many questions each has.

    Raises:
        DataError: as `read_csv`, or a file cannot be written.
    """
    parts = split(read_csv(path), seed)
    _make(folder)
    for name, group in RUINED.items():
        parts[name] += ruined(parts[name], group, folder / f"ruined-{name}", seed)
    for name, asked in parts.items():
        lines = (json.dumps(each.row(), ensure_ascii=False) + "\n" for each in asked)
        write_whole(folder / f"{name}.jsonl", "".join(lines).encode())
    return {name: len(asked) for name, asked in parts.items()}


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(folder, f"the folder cannot be made: {error.strerror}") from error


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("csv", type=Path, help="the file")
    parser.add_argument("--out", type=Path, required=True, help="folder to write")
    parser.add_argument("--seed", type=int, default=0, help="shares out the pictures; default 0")
    given = parser.parse_args()
    try:
        counts = write(given.csv, given.out, given.seed)
    except DataError as error:
        parser.exit(1, f"{error}\n")
    print(f"{given.out}: " + ", ".join(f"{name} {count} questions" for name, count in counts.items()))


if __name__ == "__main__":
    main()
