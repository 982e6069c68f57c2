"""`vqa score` on the VQA format against values that the official code computed."""

from __future__ import annotations

import pytest

from tests.support.golden import GOLDEN, read
from tests.support.shared import shared


def same(scores, expected) -> None:
    accuracy = expected["accuracy"]
    assert scores["accuracy"] == accuracy["overall"]
    assert scores["per_answer_type"] == accuracy["perAnswerType"]
    assert scores["per_question_type"] == accuracy["perQuestionType"]
    assert scores["evalQA"] == expected["evalQA"]


@pytest.mark.parametrize("code", ["2021", "2016"])
@pytest.mark.parametrize(("folder", "dataset"), [("vqa_official_format", "vqav2"), ("okvqa_format", "okvqa")])
def test_synthetic_sets(score, folder, dataset, code):
    files = {name: GOLDEN / folder / f"{name}.json" for name in ("annotations", "questions", "results")}
    same(score(dataset, code=code, **files), read(GOLDEN / folder / f"expected_{code}.json"))


@pytest.mark.parametrize("code", ["2021", "2016"])
@pytest.mark.parametrize(("folder", "dataset"), [("real_vqav2_2962", "vqav2"), ("real_textvqa_val5000", "textvqa")])
def test_real_sets(score, folder, dataset, code):
    files = {name: shared("golden", folder, f"{name}.json.gz") for name in ("annotations", "questions", "results")}
    same(score(dataset, code=code, **files), read(shared("golden", folder, f"expected_{code}.json.gz")))


@pytest.mark.parametrize("like", ["m4c", "vizwiz"])
def test_real_textvqa_like_other_programs(score, like):
    files = {name: shared("golden", "real_textvqa_val5000", f"{name}.json.gz") for name in ("annotations", "results")}
    scores = score("textvqa", like=like, **files)
    if like == "m4c":
        expected = read(shared("golden", "real_textvqa_val5000", "expected_textvqa_m4c.json.gz"))
        assert scores["scores"]["accuracy"] == expected["accuracy"]
        assert scores["evalQA"] == {key: round(100 * value, 2) for key, value in expected["scores"].items()}
    else:
        expected = read(shared("golden", "real_textvqa_val5000", "expected_vizwiz_eval.json.gz"))
        assert scores["accuracy"] == expected["accuracy"]["overall"]
        assert scores["evalQA"] == expected["evalQA"]


# What the official loader and code do with 18 odd files: the right answers, or an exception.
ODD = {row["name"]: row for row in read(GOLDEN / "vqa_official_format" / "odd_files_expected_2021.json")}
FILES = {name: GOLDEN / "vqa_official_format" / f"{name}.json" for name in ("annotations", "questions", "results")}
RESULTS = read(FILES["results"])
FIRST = RESULTS[0]["question_id"]


def without(*keys):
    """The annotations without these keys of each answer's record."""
    annotations = read(FILES["annotations"])
    for row in annotations["annotations"]:
        row["answers"] = [{k: v for k, v in answer.items() if k not in keys} for answer in row["answers"]]
    return annotations


def with_answers(count):
    annotations = read(FILES["annotations"])
    for row in annotations["annotations"]:
        row["answers"] = row["answers"][:count]
    return annotations


SCORED = {
    "all_good": {},
    "duplicate_last_wins": {"results": [*RESULTS, {"question_id": FIRST, "answer": "nothing of the kind"}]},
    "duplicate_first_right_last_right": {"results": [{"question_id": FIRST, "answer": "no"}, *RESULTS]},
    "extra_fields": {"results": [row | {"confidence": 0.5} for row in RESULTS]},
    "empty_answers": {"results": [row | {"answer": ""} for row in RESULTS]},
    "subset_of_10_ids": {"question_ids": [row["question_id"] for row in RESULTS[:10]]},
    "nine_answers": {"annotations": with_answers(9)},
    "one_answer_only": {"annotations": with_answers(1)},
    "no_answer_id": {"annotations": without("answer_id")},
    "no_answer_id_no_confidence": {"annotations": without("answer_id", "answer_confidence")},
}
REFUSED = {
    "one_missing": ({"results": RESULTS[1:]}, rf"1 of 800 have no answer \({FIRST}\)"),
    "one_extra": ({"results": [*RESULTS, {"question_id": 5, "answer": "no"}]}, r"1 answered are not in .*\(5\)"),
    "dict_not_list": ({"results": {"results": RESULTS}}, "not an array of objects but an object"),
    "answer_is_int": (
        {"results": [RESULTS[0] | {"answer": 2}, *RESULTS[1:]]},
        f"answer to question {FIRST} must be a text, and is a number",
    ),
    "answer_missing": ({"results": [{"question_id": FIRST}, *RESULTS[1:]]}, f"question {FIRST} has no answer"),
    "answer_null": (
        {"results": [RESULTS[0] | {"answer": None}, *RESULTS[1:]]},
        f"answer to question {FIRST} must be a text, and is null",
    ),
    "not_json": ({"results": "answers: none"}, "line 1, column 1: not JSON"),
    "multiple_choice_not_a_choice": (
        {
            "questions": {
                "task_type": "Multiple Choice",
                "questions": [
                    {"question_id": row["question_id"], "multiple_choices": ["yes", "no"]} for row in RESULTS
                ],
            },
            "results": [row | {"answer": "yes"} for row in RESULTS[1:]] + [{"question_id": FIRST, "answer": "Yes"}],
        },
        f"answer to question {FIRST} is none of its 2 choices",
    ),
}


def odd_files(written, changes):
    return FILES | {name: written(f"{name}.json", value) for name, value in changes.items()}


@pytest.mark.parametrize("name", SCORED)
def test_odd_files_that_the_official_code_scores(score, written, name):
    scores = score("vqav2", **odd_files(written, SCORED[name]))
    expected = ODD[name]["accuracy"]
    assert scores["accuracy"] == expected["overall"]
    assert scores["per_answer_type"] == expected["perAnswerType"]
    assert scores["per_question_type"] == expected["perQuestionType"]


@pytest.mark.parametrize("name", REFUSED)
def test_odd_files_that_the_official_loader_refuses(score, written, name):
    assert "exception" in ODD[name]
    changes, message = REFUSED[name]
    with pytest.raises(ValueError, match=message):
        score("vqav2", **odd_files(written, changes))


def test_every_odd_file_is_tested():
    assert SCORED.keys() | REFUSED.keys() == ODD.keys()


def test_an_answer_given_twice_is_told_with_its_place(score, written):
    [note] = score("vqav2", **odd_files(written, SCORED["duplicate_last_wins"]))["notes"]
    assert "the first is [800]" in note
    assert "also at [0]" in note


def test_ids_of_another_kind_are_told_apart(score, written):
    results = written("results.json", [row | {"question_id": str(row["question_id"])} for row in RESULTS])
    with pytest.raises(ValueError, match="texts in one file and numbers in the other"):
        score("vqav2", annotations=FILES["annotations"], results=results)


def test_plain_lists_as_vqa_cp_has_them(score, written):
    annotations = written("annotations.json", read(FILES["annotations"])["annotations"])
    questions = written("questions.json", read(FILES["questions"])["questions"])
    scores = score("vqacp", annotations=annotations, questions=questions, results=FILES["results"])
    same(scores, read(GOLDEN / "vqa_official_format" / "expected_2021.json"))


def test_types_that_the_annotations_leave_out(score, written):
    """The official prefix lists: every type of the synthetic questions is the prefix that they were made with."""
    annotations = read(FILES["annotations"])
    for row in annotations["annotations"]:
        del row["question_type"]
    files = FILES | {"annotations": written("annotations.json", annotations)}
    scores = score("vqav2", **files)
    expected = read(GOLDEN / "vqa_official_format" / "expected_2021.json")["accuracy"]["perQuestionType"]
    assert scores["per_question_type"] == expected
    assert any("official prefixes" in note for note in scores["notes"])


def test_textvqa_in_its_own_format(score, written):
    """One file with plain answers scores as the same answers in the VQA format."""
    rows = read(FILES["annotations"])["annotations"]
    data = [row | {"answers": [answer["answer"] for answer in row["answers"]]} for row in rows]
    scores = score("textvqa", annotations=written("textvqa.json", {"data": data}), results=FILES["results"])
    same(scores, read(GOLDEN / "vqa_official_format" / "expected_2021.json"))


def test_types_are_rounded_as_the_program_rounds(score, written):
    """One match of 32 questions, 3.125 %: Python 2.7 gives 3.13, lmms-eval does not round."""
    records = [{"answer": "yes", "answer_id": n} for n in range(10)]
    rows = [{"question_id": n, "answer_type": "yes/no", "question_type": "is", "answers": records} for n in range(32)]
    annotations = written("annotations.json", rows)
    results = written("results.json", [{"question_id": n, "answer": "no" if n else "yes"} for n in range(32)])
    official = score("vqav2", annotations=annotations, results=results)
    assert (official["accuracy"], official["per_answer_type"]["yes/no"]) == (3.13, 3.13)
    other = score("vqav2", annotations=annotations, results=results, like="lmms-eval")
    assert (other["accuracy"], other["per_answer_type"]["yes/no"]) == (3.125, 3.125)


@pytest.mark.parametrize("key", [None, True, 1.5, [1], float(FIRST)])
def test_ids_that_are_none_are_refused(score, written, key):
    results = written("results.json", [*RESULTS, {"question_id": key, "answer": "no"}])
    with pytest.raises(ValueError, match=r"\[800\].question_id: expected a whole number or a text"):
        score("vqav2", annotations=FILES["annotations"], results=results)


def test_a_broken_annotation_is_named_by_its_question(score, written):
    rows = read(FILES["annotations"])["annotations"]
    rows[5]["answers"][3]["answer"] = 7
    place = rf"question_id {rows[5]['question_id']}: answers\[3\] must be an object with a text"
    with pytest.raises(ValueError, match=place):
        score("vqacp", annotations=written("annotations.json", rows), results=FILES["results"])


def test_a_question_annotated_twice_has_the_types_of_its_last_annotation(score, written):
    """As the official code (Python 2.7) gives them: it looks a question up by its id at each visit."""
    records = [{"answer": "yes", "answer_id": n} for n in range(10)]
    row = {"question_id": 1, "question_type": "is", "answers": records}
    annotations = written("annotations.json", [row | {"answer_type": "yes/no"}, row | {"answer_type": "other"}])
    scores = score(
        "vqav2", annotations=annotations, results=written("results.json", [{"question_id": 1, "answer": "yes"}])
    )
    assert scores["per_answer_type"] == {"other": 100.0}
    assert scores["questions"] == 2


def test_questions_of_another_set_are_told(score, written):
    files = FILES | {"questions": written("questions.json", {"questions": read(FILES["questions"])["questions"][7:]})}
    [note] = score("vqav2", **files)["notes"]
    assert "7 annotated questions are not in" in note
