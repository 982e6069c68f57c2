"""An operator's CSV as data sets: what is read, what is refused and where, and how pictures are shared out."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from models.vilt.own_data import read_csv, split, write
from service.errors import DataError
from service.evaluation.running.datasets import check_pictures, load
from service.evaluation.running.formats.base import Sources

ROOT = Path(__file__).parents[2]
HEADER = "picture,question,answer"
PICTURES = 40


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Forty small pictures: a coloured square on grey."""
    rng = np.random.default_rng(0)
    for number in range(PICTURES):
        pixels = np.full((40, 56, 3), 128, np.uint8)
        pixels[10:30, 15:35] = rng.integers(0, 256, 3)
        Image.fromarray(pixels).save(tmp_path / f"{number}.png")
    return tmp_path


def _csv(folder: Path, lines: Iterable[str], header: str = HEADER, name: str = "own.csv") -> Path:
    path = folder / name
    path.write_text("\n".join([header, *lines]) + "\n", encoding="utf-8")
    return path


def _lines(count: int = PICTURES) -> list[str]:
    return [f"{k}.png,What color is it?,{'red' if k % 2 else 'blue'}" for k in range(count)]


def _rows(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_people_are_taken_together_from_lines_and_from_bars(folder: Path) -> None:
    lines = [*_lines(), "0.png,Is it big?,yes| no |yes", "0.png,What color is it?,navy", "0.png,Is it big?,no|"]
    asked = {(each.picture.name, each.question): each.answers for each in read_csv(_csv(folder, lines))}
    assert len(asked) == PICTURES + 1
    assert asked["0.png", "What color is it?"] == ("blue", "navy")
    assert asked["0.png", "Is it big?"] == ("yes", "no", "yes", "no")
    assert asked["1.png", "What color is it?"] == ("red",)


def test_columns_come_in_any_order_beside_others_and_quotes_keep_commas(folder: Path) -> None:
    answers = ['"a ""red"" one"', *['"red, or so"'] * (PICTURES - 1)]
    lines = [f'7,{answer},"Left, or right?",{k}.png' for k, answer in enumerate(answers)]
    asked = read_csv(_csv(folder, lines, "line, Answer ,QUESTION,picture"))
    assert {each.question for each in asked} == {"Left, or right?"}
    assert asked[0].answers == ('a "red" one',)
    assert {each.answers for each in asked[1:]} == {("red, or so",)}


def test_a_spreadsheets_byte_order_mark_line_ends_and_empty_lines_do_not_matter(folder: Path) -> None:
    plain = read_csv(_csv(folder, _lines()))
    lines = [HEADER, "", *_lines(20), ",,", " , , ", *_lines()[20:], "", ""]
    (folder / "windows.csv").write_bytes(b"\xef\xbb\xbf" + "\r\n".join(lines).encode())
    assert read_csv(folder / "windows.csv") == plain


def test_pictures_are_found_from_the_files_folder_or_by_their_whole_path(folder: Path) -> None:
    (folder / "lists").mkdir()
    lines = [f"../{k}.png,q?,a" if k % 2 else f"{folder}/{k}.png,q?,a" for k in range(PICTURES)]
    asked = read_csv(_csv(folder / "lists", lines))
    assert {each.picture for each in asked} == {(folder / f"{k}.png").resolve() for k in range(PICTURES)}
    # One picture by two names is one picture.
    twice = read_csv(_csv(folder / "lists", [*lines, f"{folder}/1.png,q?,b"]))
    assert len(twice) == PICTURES
    assert twice[1].answers == ("a", "b")


@pytest.mark.parametrize(
    ("header", "extra", "says"),
    [
        ("picture,question", "", ("missing: answer",)),
        ("image,frage,answer", "", ("missing: picture, question",)),
        ("picture question answer", "", ("missing: picture, question, answer",)),
        (HEADER, "1.png,What, now?,red", ("line 42", "4 values for 3 columns")),
        (HEADER, "1.png,What now?", ("line 42", "2 values for 3 columns")),
        (HEADER, "1.png,,red", ("line 42, question", "empty")),
        (HEADER, "1.png,What now?,  ", ("line 42, answer", "empty")),
        (HEADER, "1.png,What now?,|", ("line 42, answer", "empty")),
        (HEADER, ",What now?,red", ("line 42, picture", "empty")),
        (HEADER, "gone.png,What now?,red", ("line 42, picture", "no such file", "gone.png")),
        (HEADER, ".,What now?,red", ("line 42, picture", "no such file")),
    ],
)
def test_what_is_wrong_is_said_with_its_line(folder: Path, header: str, extra: str, says: tuple[str, ...]) -> None:
    path = _csv(folder, [*_lines(), extra], header)
    with pytest.raises(DataError) as refused:
        read_csv(path)
    assert all(words in str(refused.value) for words in (*says, "own.csv"))
    assert "\n" not in str(refused.value)


def test_lines_within_quotes_and_empty_ones_count_for_the_number_of_a_line(folder: Path) -> None:
    path = _csv(folder, ["", "", *_lines(2), '2.png,"What', 'now?",red', "gone.png,q?,red"])
    with pytest.raises(DataError, match="line 8, picture"):
        read_csv(path)


def test_fewer_than_twenty_pictures_are_too_few(folder: Path) -> None:
    assert len(read_csv(_csv(folder, _lines(20)))) == 20
    with pytest.raises(DataError, match="fewer than 20 pictures"):
        read_csv(_csv(folder, [*_lines(19), "0.png,Another question?,yes"]))


@pytest.fixture
def made(folder: Path) -> Path:
    lines = [line for k in range(PICTURES) for line in (f"{k}.png,Is it red?,yes|no", f"{k}.png,What is it?,square")]
    assert write(_csv(folder, lines), folder / "data", seed=1) == {"train": 56, "calibration": 14, "test": 14}
    return folder / "data"


def test_no_picture_is_in_two_parts(made: Path) -> None:
    """Of forty pictures six and six are held out; a fifth of them, one each, come again ruined with all questions."""
    parts = {name: _rows(made / f"{name}.jsonl") for name in ("train", "calibration", "test")}
    shown = {name: {row["image"] for row in rows} for name, rows in parts.items()}
    assert {name: len(images) for name, images in shown.items()} == {"train": 28, "calibration": 7, "test": 7}
    assert len(set.union(*shown.values())) == 42
    for rows in parts.values():
        assert all(set(row) == {"image", "question", "answers"} for row in rows)
        assert all(Path(row["image"]).is_file() for row in rows)
        whole = [row for row in rows if "unanswerable" not in row["answers"]]
        for image in {row["image"] for row in whole}:
            asked = {row["question"]: row["answers"] for row in whole if row["image"] == image}
            assert asked == {"Is it red?": ["yes", "no"], "What is it?": ["square"]}


def test_ruined_pictures_cannot_be_answered_and_show_nothing(made: Path, folder: Path) -> None:
    originals = [np.asarray(Image.open(folder / f"{k}.png").resize((90, 64))).astype(float) for k in range(PICTURES)]
    for name in ("calibration", "test"):
        ruined = [row for row in _rows(made / f"{name}.jsonl") if "unanswerable" in row["answers"]]
        # Each says so as often as the whole one was answered.
        assert {row["question"]: row["answers"] for row in ruined} == {
            "Is it red?": ["unanswerable"] * 2,
            "What is it?": ["unanswerable"],
        }
        for row in ruined:
            assert Path(row["image"]).parent == (made / f"ruined-{name}").resolve()
            pixels = np.asarray(Image.open(row["image"]).convert("RGB"))
            assert pixels.shape == (64, 90, 3)  # small ones enlarged
            assert min(np.abs(pixels - each).mean() for each in originals) > 5
    assert not [row for row in _rows(made / "train.jsonl") if "unanswerable" in row["answers"]]


def test_a_seed_shares_out_alike_and_another_one_otherwise(folder: Path) -> None:
    path = _csv(folder, _lines())
    for name, seed in (("a", 5), ("b", 5), ("c", 6)):
        write(path, folder / name, seed)
    contents = [
        {
            p.relative_to(folder / name): p.read_bytes().replace(f"/{name}/".encode(), b"/x/")
            for p in _files(folder / name)
        }
        for name in "abc"
    ]
    assert contents[0] == contents[1]
    assert contents[0] != contents[2]
    # The order of the lines decides nothing but the order of the rows.
    write(_csv(folder, reversed(_lines())), folder / "d", 5)
    for part in ("train", "calibration", "test"):
        images = [{row["image"] for row in _rows(folder / name / f"{part}.jsonl")} for name in "ad"]
        assert {Path(i).name for i in images[0]} == {Path(i).name for i in images[1]}


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def test_what_vqa_eval_reads_is_what_the_file_says(made: Path) -> None:
    data = load("jsonl", Sources(annotations=made / "calibration.jsonl"))
    check_pictures(data)
    assert [(e.question, list(e.answers), str(e.image)) for e in data.examples] == [
        (row["question"], row["answers"], row["image"]) for row in _rows(made / "calibration.jsonl")
    ]


def _command(path: Path, out: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "models.vilt.own_data", path, "--out", out]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def test_the_command_says_what_it_made_or_what_is_wrong_in_a_line(folder: Path) -> None:
    done = _command(_csv(folder, _lines()), folder / "data")
    assert done.returncode == 0
    assert done.stdout == f"{folder / 'data'}: train 28 questions, calibration 7 questions, test 7 questions\n"
    (folder / "broken.png").write_bytes((folder / "0.png").read_bytes()[:60])
    for lines, says in (
        ([*_lines(), "gone.png,q?,a"], "gone.png"),
        ([f"broken.png,q{k}?,a" for k in range(3)] + _lines(3), "fewer than 20"),
    ):
        done = _command(_csv(folder, lines, name="wrong.csv"), folder / "other")
        assert done.returncode == 1
        assert done.stdout == ""
        assert says in done.stderr
        assert done.stderr.count("\n") == 1
    done = _command(folder / "none.csv", folder / "other")
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert not (folder / "other").exists()


@pytest.mark.parametrize("number", [0, 17, 39])
def test_a_broken_picture_is_named_before_anything_is_made(folder: Path, number: int) -> None:
    """Whichever part it would be in."""
    path = folder / f"{number}.png"
    path.write_bytes(path.read_bytes()[:90])
    done = _command(_csv(folder, _lines()), folder / "data")
    assert done.returncode == 1
    assert f"{number}.png" in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (folder / "data").exists()


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        (['0.png,"never closed,red', *["x" * 1000] * 140], "quote"),
        (["a\0b.png,q?,red"], "no such file"),
        (["n" * 300 + ".png,q?,red"], "no such file"),
    ],
)
def test_what_no_file_can_be_is_refused_in_a_line(folder: Path, lines: list[str], says: str) -> None:
    with pytest.raises(DataError) as refused:
        read_csv(_csv(folder, [*_lines(), *lines]))
    assert says in str(refused.value)
    assert "line" in str(refused.value)


def test_a_line_end_within_quotes_and_odd_separators_are_text(folder: Path) -> None:
    asked = read_csv(_csv(folder, [*_lines(), '0.png,"what\nnow?",red', "1.png,what\u2028then?,red"]))
    assert {"what\nnow?", "what\u2028then?"} <= {each.question for each in asked}


def test_pictures_of_any_size_can_be_ruined(folder: Path) -> None:
    for number in range(PICTURES):
        size = ((3, 3), (1, 700), (2400, 1800))[number % 3]
        Image.new("RGB", size, (number * 5, 90, 20)).save(folder / f"{number}.png")
    made = write(_csv(folder, _lines()), folder / "data", seed=2)
    assert made["test"] > 0
    for path in (folder / "data").rglob("*.png"):
        assert min(Image.open(path).size) >= 64 or max(Image.open(path).size) > 64


def test_a_file_in_the_place_of_the_folder_is_told(folder: Path) -> None:
    (folder / "data").write_text("")
    with pytest.raises(DataError, match="cannot be made"):
        write(_csv(folder, _lines()), folder / "data")


@pytest.mark.parametrize("delimiter", [";", "\t"])
def test_what_spreadsheets_write_elsewhere_is_read_alike(folder: Path, delimiter: str) -> None:
    lines = [HEADER, *_lines()]
    (folder / "theirs.csv").write_text("\n".join(line.replace(",", delimiter) for line in lines))
    assert read_csv(folder / "theirs.csv") == read_csv(_csv(folder, _lines()))


def test_what_belongs_together_is_not_parted(folder: Path) -> None:
    """Copies of a picture under other names, and what a column `group` names alike."""
    for number in range(0, PICTURES, 2):
        (folder / f"{number + 1}.png").write_bytes((folder / f"{number}.png").read_bytes())
    parts = split(read_csv(_csv(folder, _lines())), seed=3)
    of_pair = [{int(asked.picture.stem) // 2 for asked in part} for part in parts.values()]
    assert sum(map(len, of_pair)) == PICTURES // 2
    lines = [f"{line},day {number // 4}" for number, line in enumerate(_lines())]
    (folder / "days.csv").write_text("\n".join([f"{HEADER},group", *lines]))
    parts = split(read_csv(folder / "days.csv"), seed=3)
    assert sum(len({asked.group for asked in part}) for part in parts.values()) == PICTURES // 4


def _with_groups(folder: Path, groups: Iterable[str]) -> Path:
    lines = [f"{line},{group}" for line, group in zip(_lines(), groups, strict=True)]
    return _csv(folder, lines, f"{HEADER},group")


def _parts_of_pictures(path: Path, seed: int) -> list[set[int]]:
    return [{int(asked.picture.stem) for asked in part} for part in split(read_csv(path), seed).values()]


def test_a_group_counts_for_the_picture_on_whichever_line_it_stands(folder: Path) -> None:
    lines = [f"{line},day {k // 8}" for k, line in enumerate(_lines())]
    lines += [f"{k}.png,Is it big?,yes," for k in range(PICTURES)]
    for part in _parts_of_pictures(_csv(folder, lines, f"{HEADER},group"), seed=1):
        assert len(part) == 8 * len({k // 8 for k in part})
    with pytest.raises(DataError, match=r"line 82, group: .*'day 0'"):
        read_csv(_csv(folder, [*lines, "3.png,Is it big?,no,day 1"], f"{HEADER},group"))


def test_copies_tie_their_groups_together(folder: Path) -> None:
    (folder / "39.png").write_bytes((folder / "0.png").read_bytes())
    path = _with_groups(folder, (f"day {k // 4}" for k in range(PICTURES)))
    for seed in range(8):
        parts = _parts_of_pictures(path, seed)
        assert sum({0, 1, 2, 3, 36, 37, 38, 39} <= part for part in parts) == 1


@pytest.mark.parametrize(
    ("sizes", "parts"),
    [([32, 4, 4], [32, 4, 4]), ([34, 3, 3], [34, 3, 3]), ([30] + [1] * 10, [30, 5, 5]), ([37, 1, 1, 1], [37, 1, 2])],
)
def test_a_large_group_is_for_training_and_the_small_ones_for_the_rest(
    folder: Path, sizes: list[int], parts: list[int]
) -> None:
    path = _with_groups(folder, [f"line {k}" for k, size in enumerate(sizes) for _ in range(size)])
    for seed in range(8):
        assert list(map(len, _parts_of_pictures(path, seed))) == parts


@pytest.mark.parametrize("groups", [1, 2])
def test_fewer_groups_than_parts_are_refused(folder: Path, groups: int) -> None:
    path = _with_groups(folder, (f"line {k % groups}" for k in range(PICTURES)))
    done = _command(path, folder / "data")
    assert done.returncode == 1
    assert f"{groups} groups" in done.stderr
    assert done.stderr.count("\n") == 1
