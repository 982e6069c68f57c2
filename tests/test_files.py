"""Data files: compressed or not, and where a broken one is broken."""

from __future__ import annotations

import gzip
import json

import pytest

from service.errors import DataError
from service.files import json_bytes, read_json, read_rows, write_whole

ROWS = [{"question_id": 1, "answer": "yes"}, {"question_id": 2, "answer": "no"}]


def test_plain_compressed_and_with_a_byte_order_mark_are_one(tmp_path):
    text = json.dumps(ROWS).encode()
    for name, data in {"a.json": text, "b.gz": gzip.compress(text), "c": b"\xef\xbb\xbf" + text}.items():
        (tmp_path / name).write_bytes(data)
        assert read_json(tmp_path / name) == ROWS


def test_json_lines_and_an_array_give_the_same_rows_with_their_places(tmp_path):
    array, lines = tmp_path / "array.json", tmp_path / "lines.jsonl"
    array.write_text(json.dumps(ROWS))
    # A line separator of Unicode within a text ends no line.
    lines.write_text(
        "\n".join([json.dumps(ROWS[0]), "", json.dumps(ROWS[1] | {"answer": "n\u2028o"}, ensure_ascii=False)])
    )
    assert read_rows(array) == [("[0]", ROWS[0]), ("[1]", ROWS[1])]
    assert read_rows(lines) == [("line 1", ROWS[0]), ("line 3", {"question_id": 2, "answer": "n\u2028o"})]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "empty"),
        (b'[{"question_id": 1, "answer": "y', "line 1, column 31: the text ends in the middle"),
        (b'[{"question_id": 1},\n {"question_id"', "line 2, column 16: the text ends in the middle"),
        (b"[1,\n 2,\n x]", "line 3, column 2: not JSON"),
        (b'["a\xff"]', "line 1: not UTF-8"),
        (gzip.compress(b"[1]")[:-4], "compressed data end early"),
        (gzip.compress(b"[1]")[:12] + b"\x00\x00\x00\x00\x00\x00\x00\x00", "damaged|end early"),
        (b"[" * 200_000 + b"]" * 200_000, "line 1: it is nested too deeply"),
        (b"[" + b"9" * 5000 + b"]", "line 1: a number in it has more digits"),
    ],
)
def test_broken_files_say_where(tmp_path, data, message):
    path = tmp_path / "results.json"
    path.write_bytes(data)
    with pytest.raises(DataError, match=message) as caught:
        read_json(path)
    assert str(caught.value).startswith(str(path))


def test_a_torn_last_line_says_where(tmp_path):
    path = tmp_path / "answers.jsonl"
    path.write_text('{"answer": "yes"}\n{"answer": "n')
    with pytest.raises(DataError, match="line 2, column 12: the text ends in the middle"):
        read_rows(path)
    path.write_text('{"answer": "yes"}\n' + "[" * 200_000)
    with pytest.raises(DataError, match="line 2: it is nested too deeply"):
        read_rows(path)


def test_an_object_over_several_lines_is_not_called_cut_short(tmp_path):
    path = tmp_path / "answers.jsonl"
    path.write_text(json.dumps({"answers": ROWS}, indent=1))
    with pytest.raises(DataError, match="one JSON value; expected an array, or a value a line"):
        read_rows(path)


def test_files_that_cannot_be_read(tmp_path):
    for path in (tmp_path / "nothing.json", tmp_path):
        with pytest.raises(DataError, match="cannot be read"):
            read_json(path)


def test_a_file_is_written_whole_or_not_at_all(tmp_path):
    path = tmp_path / "results.json"
    write_whole(path, b"old")
    with pytest.raises(TypeError):
        write_whole(path, "a text is no bytes")  # type: ignore[arg-type]
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]
    with pytest.raises(DataError, match="cannot be written"):
        write_whole(tmp_path / "nowhere" / "results.json", b"new")


@pytest.mark.parametrize("text", ["\ud800 kind", "a\udcff", "\\\ud800", "rosé 日本 🙂", 'a "b" \\u'])
def test_what_utf8_cannot_hold_is_escaped_and_comes_back(text):
    value = {text: [text, 0.5, None]}
    written = json_bytes(value)
    assert json.loads(written.decode("utf-8")) == value
    assert written.count(b"\n") == 1
