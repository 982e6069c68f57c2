"""Data sets as questions to ask: every format, what is refused, and that results fit the official evaluators."""

from __future__ import annotations

import json
from pathlib import Path

import easy_vqa
import pytest

from service.errors import DataError
from service.evaluation.records import Example, Prediction
from service.evaluation.running.asker import RunError
from service.evaluation.running.datasets import DataSet, check_pictures, first_questions, load, select, with_pictures
from service.evaluation.running.fingerprint import digest
from service.evaluation.running.formats.base import NoFileError, Sources
from service.files import write_whole
from service.scoring.datasets import evaluator
from service.scoring.scores import Inputs
from tests.support.shared import shared

GOLDEN = Path(__file__).parents[1] / "golden"


def written(path: Path, content: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def question(question_id: int, image_id: int | str = 42, **more: object) -> dict[str, object]:
    return {"question_id": question_id, "image_id": image_id, "question": f"q{question_id}?", **more}


def annotation(question_id: int, image_id: int | str = 42, **more: object) -> dict[str, object]:
    answers = [{"answer": f"a{number}", "answer_id": number} for number in (1, 2)]
    row = {"question_id": question_id, "image_id": image_id, "answers": answers, "answer_type": "other"}
    return {**row, "question_type": "what", **more}


def vqa(folder: Path, questions: object, annotations: object, **more: object) -> DataSet:
    files = written(folder / "q.json", questions), written(folder / "a.json", annotations)
    return load("vqav2", Sources(*files, **more))  # type: ignore[arg-type]


class TestVqa:
    def test_both_files_make_examples_in_the_order_of_the_annotations(self, tmp_path: Path) -> None:
        head = {"data_type": "mscoco", "data_subtype": "val2014"}
        data = vqa(
            tmp_path,
            head | {"questions": [question(1), question(2)]},
            head | {"annotations": [annotation(2), annotation(1)]},
            images=tmp_path / "val2014",
        )
        assert [example.question_id for example in data.examples] == [2, 1]
        assert data.examples[0] == Example(
            2,
            tmp_path / "val2014" / "COCO_val2014_000000000042.jpg",
            "q2?",
            ("a1", "a2"),
            "other",
            "what",
            {"image_id": "42"},
        )

    @pytest.mark.parametrize(
        ("head", "row", "name"),
        [
            ({"data_type": "mscoco", "data_subtype": "test2015"}, {}, "COCO_test2015_000000000042.jpg"),
            ({"data_type": "mscoco", "data_subtype": "val2017"}, {}, "000000000042.jpg"),
            ({"data_type": "abstract_v002", "data_subtype": "val2015"}, {}, "abstract_v002_val2015_000000000042.png"),
            ({}, {"coco_split": "train2014"}, "COCO_train2014_000000000042.jpg"),
            ({"data_type": "TextVQA", "data_subtype": "val"}, {"image_id": "0a1b"}, "0a1b.jpg"),
        ],
    )
    def test_pictures_are_named_as_officially(
        self, tmp_path: Path, head: dict[str, str], row: dict[str, str], name: str
    ) -> None:
        questions = [question(1) | row]
        data = vqa(tmp_path, head | {"questions": questions} if head else questions, [annotation(1)])
        assert data.examples[0].image == tmp_path / name

    def test_a_template_names_them_otherwise(self, tmp_path: Path) -> None:
        template = "{image_id:06d}-{question_id}.png"
        assert (
            vqa(tmp_path, [question(1)], [annotation(1)], image_name=template).examples[0].image.name == "000042-1.png"
        )
        with pytest.raises(DataError, match="--image-name"):
            vqa(tmp_path, [question(1)], [annotation(1)], image_name="{nothing}")
        with pytest.raises(DataError, match="--image-name"):
            vqa(tmp_path, [question(1)], [annotation(1)])

    def test_one_file_may_hold_both(self, tmp_path: Path) -> None:
        rows = [{"question_id": 7, "image_id": "0a", "question": "what?", "answers": ["one", "two"], "image_width": 5}]
        data = load("textvqa", Sources(annotations=written(tmp_path / "val.json", {"data": rows})))
        assert data.examples[0].answers == ("one", "two")
        assert data.examples[0].extra["image_width"] == "5"

    @pytest.mark.parametrize(
        ("questions", "annotations", "says"),
        [
            ([question(1), question(2), question(1)], [annotation(1)], r"q\.json: \[2\]: question 1 .* also at \[0\]"),
            ([question(1)], [annotation(1), annotation(1)], r"a\.json: \[1\]: question 1 .* also at \[0\]"),
            ([question(1)], [annotation(1), annotation(2)], r"a\.json: 1 annotated questions are not in .*question 2"),
            ([question(1) | {"question": 5}], [annotation(1)], r"q\.json: question 1\.question: it must be a text"),
            ([question(1)], [annotation(1) | {"answers": []}], r"a\.json: question 1\.answers"),
            ({"task_type": "Multiple Choice", "questions": [question(1)]}, [annotation(1)], "multiple-choice"),
        ],
    )
    def test_what_cannot_be_asked_is_refused_with_its_place(
        self, tmp_path: Path, questions: object, annotations: object, says: str
    ) -> None:
        with pytest.raises(DataError, match=says):
            vqa(tmp_path, questions, annotations, image_name="{image_id}.jpg")

    @pytest.mark.parametrize("odd", [1.0, True, None, [1]])
    def test_ids_are_whole_numbers_or_texts(self, tmp_path: Path, odd: object) -> None:
        with pytest.raises(DataError, match=r"q\.json: \[1\]\.question_id: "):
            vqa(tmp_path, [question(7), question(1) | {"question_id": odd}], [annotation(7)], image_name="x")
        annotations = [annotation(7), annotation(1) | {"question_id": odd}]
        with pytest.raises(DataError, match=r"a\.json: \[1\]\.question_id: "):
            vqa(tmp_path, [question(7)], annotations, image_name="x")

    @pytest.mark.parametrize("name", ["answer_type", "question_type"])
    def test_types_are_texts_or_nothing(self, tmp_path: Path, name: str) -> None:
        without = annotation(1) | {name: None}
        assert getattr(vqa(tmp_path, [question(1)], [without], image_name="x").examples[0], name) is None
        with pytest.raises(DataError, match=rf"a\.json: question 1\.{name}: it must be a text, and is a number"):
            vqa(tmp_path, [question(1)], [annotation(1) | {name: 3}], image_name="x")

    def test_files_that_are_not_given_are_named(self, tmp_path: Path) -> None:
        with pytest.raises(NoFileError, match="--annotations"):
            load("vqav2", Sources(questions=written(tmp_path / "q.json", [question(1)])))
        with pytest.raises(NoFileError, match="--questions"):
            load("vqav2", Sources(annotations=written(tmp_path / "a.json", [annotation(1)])))


VIZWIZ_ROW = {"image": "a.jpg", "question": "what?", "answers": [{"answer": "x", "answer_confidence": "yes"}] * 10}


class TestVizWiz:
    def test_a_question_is_known_by_its_picture(self, tmp_path: Path) -> None:
        row = VIZWIZ_ROW | {"answer_type": "other", "answerable": 1}
        data = load("vizwiz", Sources(written(tmp_path / "val.json", [row]), images=tmp_path / "val"))
        answers = ("x",) * 10
        assert data.examples == [
            Example("a.jpg", tmp_path / "val" / "a.jpg", "what?", answers, "other", extra={"answerable": "1"})
        ]

    def test_types_are_texts_or_nothing(self, tmp_path: Path) -> None:
        with pytest.raises(DataError, match=r"\[0\]\.answer_type: it must be a text"):
            load("vizwiz", Sources(written(tmp_path / "val.json", [VIZWIZ_ROW | {"answer_type": ["other"]}])))

    def test_answerability_is_the_probability_or_what_the_reply_says(self, tmp_path: Path) -> None:
        rows = [VIZWIZ_ROW | {"image": name} for name in "abcd"]
        data = load("vizwiz", Sources(written(tmp_path / "val.json", rows)))
        replies = [
            Prediction("a", answer="x", answerable=True, answerability=0.75),
            Prediction("b", answer="unanswerable", answerable=False),
            Prediction("c", answer="x"),
            Prediction("d", error="image_truncated"),
        ]
        written_rows = data.format.answerability(zip(data.examples, replies, strict=True))
        assert written_rows is not None
        assert json.loads(written_rows) == [
            {"image": "a", "answerable": 0.75},
            {"image": "b", "answerable": 0.0},
            {"image": "c", "answerable": 1.0},
            {"image": "d", "answerable": 1.0},
        ]


class TestJsonl:
    def test_lines_without_ids_are_known_by_number_and_may_be_selected_by_any_key(self, tmp_path: Path) -> None:
        rows = [{"image": "p/a.png", "question": "q?", "answers": ["x"], "kind": kind, "good": True} for kind in "uvu"]
        path = written(tmp_path / "m.jsonl", "\n".join(map(json.dumps, rows)))
        data = load("jsonl", Sources(annotations=path))
        assert [(e.question_id, e.image) for e in data.examples] == [(n, tmp_path / "p/a.png") for n in (1, 2, 3)]
        assert [e.question_id for e in select(data, [("kind", "u")]).examples] == [1, 3]
        assert [e.question_id for e in first_questions(select(data, [("kind", "u"), ("kind", "v")]), 2).examples] == [
            1,
            2,
        ]
        assert not select(data, [("kind", "u"), ("good", "true")]).whole
        with pytest.raises(RunError, match=r"'colour' .* there are .*good, kind"):
            select(data, [("colour", "u")])
        with pytest.raises(RunError, match="no question is left"):
            select(data, [("kind", "u"), ("good", "false")])

    def test_twice_the_same_id_is_refused_with_both_places(self, tmp_path: Path) -> None:
        rows = [{"image": "a.png", "question": "q?", "answers": ["x"], "question_id": 5}] * 2
        path = written(tmp_path / "m.jsonl", "\n".join(map(json.dumps, rows)))
        with pytest.raises(DataError, match=r"line 2.* line 1"):
            load("jsonl", Sources(annotations=path))

    def test_pictures_lie_beside_the_file_or_in_images(self, tmp_path: Path) -> None:
        (tmp_path / "images").mkdir()
        (tmp_path / "a.png").write_bytes(b"x")
        (tmp_path / "images" / "b.png").write_bytes(b"x")
        rows = [{"image": name, "question": "q?", "answers": ["x"]} for name in ("a.png", "b.png")]
        path = written(tmp_path / "m.jsonl", "\n".join(map(json.dumps, rows)))
        check_pictures(load("jsonl", Sources(annotations=path)))

    @pytest.mark.parametrize(("name", "value"), [("answer_type", 3), ("question_type", True), ("question_type", ["x"])])
    def test_types_are_texts_or_nothing(self, tmp_path: Path, name: str, value: object) -> None:
        row = {"image": "a.png", "question": "q?", "answers": ["x"], name: value}
        with pytest.raises(DataError, match=rf"m\.jsonl: question 1\.{name}: it must be a text"):
            load("jsonl", Sources(annotations=written(tmp_path / "m.jsonl", row)))

    def test_the_number_of_a_line_may_be_no_other_rows_id(self, tmp_path: Path) -> None:
        rows = [{"image": "a.png", "question": "q?", "answers": ["x"], "question_id": "2"}]
        rows.append({"image": "a.png", "question": "q?", "answers": ["x"]})
        path = written(tmp_path / "m.jsonl", "\n".join(map(json.dumps, rows)))
        with pytest.raises(DataError, match=r"question 2 is there twice, also at question '2'"):
            load("jsonl", Sources(annotations=path))

    def test_the_real_photographs(self) -> None:
        data = load("jsonl", Sources(annotations=shared("real", "manifest.jsonl")))
        assert len(data.examples) == 766
        chosen, left_out = with_pictures(select(data, [("kind", "vqa_v2_human")]))
        assert (len(chosen.examples), left_out) == (52, 0)
        assert chosen.examples[0].question_id == 25006


def test_missing_pictures_are_counted_and_named(tmp_path: Path) -> None:
    rows = [{"image": f"{number}.png", "question": "q?", "answers": ["x"]} for number in (1, 2, 3, 3)]
    data = load("jsonl", Sources(annotations=written(tmp_path / "m.jsonl", "\n".join(map(json.dumps, rows)))))
    (tmp_path / "2.png").write_bytes(b"x")
    with pytest.raises(RunError, match=r"2 of 3 pictures are missing: .*1\.png, .*3\.png.*--skip-missing"):
        check_pictures(data)
    left, count = with_pictures(data)
    assert ([example.question_id for example in left.examples], count) == ([2], 3)
    (tmp_path / "2.png").unlink()
    with pytest.raises(RunError, match="3 of 3"):
        with_pictures(data)


def test_a_name_that_no_file_can_have_is_a_missing_picture(tmp_path: Path) -> None:
    row = {"image": "a" * 5000, "question": "q?", "answers": ["x"]}
    data = load("jsonl", Sources(annotations=written(tmp_path / "m.jsonl", row)))
    with pytest.raises(RunError, match="1 of 1 pictures are missing"):
        check_pictures(data)


class TestOthers:
    def test_gqa_asks_all_questions_by_structural_type(self) -> None:
        path = GOLDEN / "gqa_format" / "a_all_questions.json"
        rows = json.loads(path.read_text())
        data = load("gqa", Sources(path, images=Path("gqa")))
        assert [example.question_id for example in data.examples] == list(rows)
        first, row = data.examples[0], next(iter(rows.values()))
        assert (first.question, first.answers) == (row["question"], (row["answer"],))
        assert first.image == Path("gqa") / f"{row['imageId']}.jpg"
        assert first.question_type == row["types"]["structural"]
        balanced = select(data, [("isBalanced", "true")]).examples
        assert len(balanced) == sum(row["isBalanced"] for row in rows.values())

    def test_gqa_comes_in_chunks_too(self, tmp_path: Path) -> None:
        rows = json.loads((GOLDEN / "gqa_format" / "a_all_questions.json").read_text())
        parts = list(rows.items())
        folder = tmp_path / "train_all"
        for number, part in enumerate((parts[:100], parts[100:])):
            written(folder / f"train_all_{number}.json", dict(part))
        assert [e.question_id for e in load("gqa", Sources(folder)).examples] == list(rows)
        assert list(digest(folder)) == ["train_all_0.json", "train_all_1.json"]

    def test_what_gqa_leaves_out_of_its_scores_is_right_word_for_word(self) -> None:
        data = load("gqa", Sources(GOLDEN / "gqa_format" / "a_all_questions.json"))
        outside = [example for example in data.examples if example.extra["isBalanced"] == "false"][:2]
        pairs = [
            (e, Prediction(e.question_id, answer=a)) for e, a in zip(outside, (outside[0].answers[0], "?"), strict=True)
        ]
        assert list(data.format.accuracies({}, pairs).values()) == [1.0, 0.0]
        balanced = next(example for example in data.examples if example.extra["isBalanced"] == "true")
        with pytest.raises(KeyError):
            data.format.accuracies({}, [(balanced, Prediction(balanced.question_id, answer=balanced.answers[0]))])

    def test_what_another_evaluator_leaves_out_is_not_guessed(self, tmp_path: Path) -> None:
        row = {"image": "a.png", "question": "q?", "answers": ["x"]}
        data = load("jsonl", Sources(annotations=written(tmp_path / "m.jsonl", row)))
        with pytest.raises(KeyError):
            data.format.accuracies({}, [(data.examples[0], Prediction(1, answer="x"))])

    def test_pope_is_lines_with_picture_names(self, tmp_path: Path) -> None:
        rows = [
            {"question_id": 1, "image": "COCO_val2014_000000310196.jpg", "text": "Is there a car?", "label": "yes"},
            {"question_id": 2, "image": "COCO_val2014_000000310196.jpg", "text": "Is there a dog?", "label": "no"},
        ]
        path = written(tmp_path / "pope.json", "\n".join(map(json.dumps, rows)))
        data = load("pope", Sources(path, images=tmp_path / "val2014"))
        image = tmp_path / "val2014" / "COCO_val2014_000000310196.jpg"
        assert data.examples[1] == Example(2, image, "Is there a dog?", ("no",), "yes/no", extra={"label": "no"})
        pairs = [(example, Prediction(example.question_id, answer="yes")) for example in data.examples]
        assert [json.loads(line) for line in data.format.results(pairs).splitlines()] == [
            {"question_id": row["question_id"], "question": row["text"], "answer": "yes"} for row in rows
        ]
        written(path, "\n".join(map(json.dumps, rows + rows[:1])))
        with pytest.raises(DataError, match=r"line 3: question 1 is there twice, also at line 1"):
            load("pope", Sources(path))

    @pytest.mark.parametrize("odd", [1.5, False, None])
    def test_an_id_of_pope_is_a_whole_number_or_a_text(self, tmp_path: Path, odd: object) -> None:
        row = {"question_id": odd, "image": "a.jpg", "text": "Is there a car?", "label": "yes"}
        with pytest.raises(DataError, match=r"question_id: expected a whole number or a text"):
            load("pope", Sources(written(tmp_path / "pope.json", row)))

    def test_easy_vqa_has_its_pictures_beside_it(self) -> None:
        path = Path(easy_vqa.__file__).parent / "data" / "test" / "questions.json"
        data = load("easyvqa", Sources(path))
        assert len(data.examples) == 9673
        first = data.examples[0]
        assert (first.question_id, first.question, first.answers) == (0, "what is the red shape?", ("triangle",))
        check_pictures(data)
        part = first_questions(select(data, [("question_type", "colour")]), 3)
        assert [example.question_id for example in part.examples] != [0, 1, 2]
        part.rehearse()

    def test_what_the_evaluator_will_refuse_is_known_beforehand(self) -> None:
        data = load("gqa", Sources(GOLDEN / "gqa_format" / "a_all_questions.json"))
        data.rehearse()
        with pytest.raises(DataError, match="balanced"):
            select(data, [("isBalanced", "false")]).rehearse()


# Each golden set with the answers that its official program scored, and the accuracy that it gave.
SETS = [
    ("vqav2", "vqa_official_format", "questions.json", "annotations.json", "results.json", "question_id"),
    ("okvqa", "okvqa_format", "questions.json", "annotations.json", "results.json", "question_id"),
    ("vizwiz", "vizwiz_format", None, "annotations_a.json", "results_vqa_a.json", "image"),
    ("gqa", "gqa_format", None, "a_all_questions.json", "a_predictions.json", "questionId"),
]


@pytest.mark.parametrize("part", [None, 50])
@pytest.mark.parametrize(("name", "folder", "questions", "annotations", "results", "key"), SETS)
def test_results_and_parts_of_sets_fit_the_official_evaluator(
    tmp_path: Path,
    name: str,
    folder: str,
    questions: str | None,
    annotations: str,
    results: str,
    key: str,
    part: int | None,
) -> None:
    files = GOLDEN / folder
    name_of_picture = {"image": "{image}", "question_id": "{image_id}"}.get(key)
    sources = Sources(questions and files / questions, files / annotations, image_name=name_of_picture)
    data = first_questions(load(name, sources), part)
    answers = {row[key]: row.get("answer", row.get("prediction")) for row in json.loads((files / results).read_text())}
    pairs = [(e, Prediction(e.question_id, answer=answers[e.question_id] or None)) for e in data.examples]
    write_whole(tmp_path / "results.json", data.format.results(pairs))
    scores = data.score(data.scoring_files(tmp_path / "selection"), tmp_path / "results.json", None, "2021")
    accuracies = data.format.accuracies(scores.per_question, pairs)
    inputs = Inputs(annotations=files / annotations, results=files / results)
    whole = evaluator(name)(inputs).per_question
    wanted = [example.question_id for example in data.examples if example.question_id in whole]
    assert {key: accuracies[key] for key in wanted} == {key: whole[key] for key in wanted}
    assert scores.questions == len(wanted) > 20
    assert len(accuracies) == len(data.examples)


def test_a_limit_counts_questions_whose_picture_is_there(tmp_path: Path) -> None:
    rows = [{"image": f"{number}.png", "question": "q?", "answers": ["x"]} for number in range(1, 6)]
    data = load("jsonl", Sources(annotations=written(tmp_path / "m.jsonl", "\n".join(map(json.dumps, rows)))))
    for number in (3, 4, 5):
        (tmp_path / f"{number}.png").write_bytes(b"x")
    left, _ = with_pictures(data)
    assert [example.question_id for example in first_questions(left, 2).examples] == [3, 4]
    assert first_questions(data, None).whole
