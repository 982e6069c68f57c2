"""A data set to run a model over: its questions, checked before any work begins, and how its results are scored."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from service.answers import ACCURACY_CODES
from service.errors import DataError
from service.evaluation.records import Example, Prediction
from service.evaluation.running.asker import RunError
from service.evaluation.running.formats.base import Format, Sources
from service.evaluation.running.formats.easyvqa import EasyVqaFormat
from service.evaluation.running.formats.gqa import GqaFormat
from service.evaluation.running.formats.jsonl import JsonlFormat
from service.evaluation.running.formats.pope import PopeFormat
from service.evaluation.running.formats.vizwiz import VizWizFormat
from service.evaluation.running.formats.vqa import VqaFormat
from service.files import uncollected, write_whole
from service.scoring.datasets import evaluator
from service.scoring.scores import Inputs, Scores

_SHOWN: Final = 5
_OF_AN_EXAMPLE: Final = ("question_id", "answer_type", "question_type")

FORMATS: Final[Mapping[str, Callable[[], Format]]] = {
    **dict.fromkeys(("vqav2", "vqa", "okvqa", "textvqa", "vqacp", "advqa"), VqaFormat),
    "vizwiz": VizWizFormat,
    "gqa": GqaFormat,
    "pope": PopeFormat,
    "easyvqa": EasyVqaFormat,
    "jsonl": JsonlFormat,
}


@dataclass(frozen=True)
class DataSet:
    """A data set, or the part of one that is to be asked.

    Attributes:
        examples: the questions to ask, in the order of the annotations.
        whole: whether those are all of its questions.
        content: what the format read of the files; None once `settled`.
        part: the files of the questions alone, by name, where those are not all and the data set is `settled`.
    """

    name: str
    format: Format
    sources: Sources
    examples: list[Example]
    whole: bool = True
    content: Any = field(default=None, repr=False)
    part: Mapping[str, bytes] | None = field(default=None, repr=False)

    def settled(self) -> DataSet:
        """The same once its questions are chosen: what was read is let go, but for the part that is to be scored."""
        part = None if self.whole else self.format.part(self.content, self.examples)
        return replace(self, content=None, part=part)

    def scoring_files(self, folder: Path) -> Sources:
        """The files to score against; where a part was asked, that part, written into the folder.

        Raises:
            DataError: they cannot be written.
        """
        if self.whole:
            return self.sources
        part = self.settled().part if self.part is None else self.part
        if part is None:
            raise AssertionError("a part of a data set has files of its own")
        try:
            folder.mkdir(exist_ok=True)
        except OSError as error:
            raise DataError(folder, f"the folder cannot be made: {error.strerror}") from error
        for name, data in part.items():
            write_whole(folder / name, data)
        return self.sources.within(folder, part)

    def score(self, files: Sources, results: Path, answerability: Path | None, code: str) -> Scores:
        """Score a results file by the official evaluator.

        Raises:
            DataError: the evaluator refuses a file.
        """
        annotations = files.annotations or files.questions
        if annotations is None:
            raise AssertionError("a data set has a file")
        questions = files.questions if files.annotations is not None else None
        inputs = Inputs(
            annotations=annotations, results=results, questions=questions, code=code, answerability=answerability
        )
        return evaluator(self.name)(inputs)

    def rehearse(self) -> None:
        """Score as if nothing had been answered, so that whatever the evaluator refuses is known before any work.

        Raises:
            DataError: what it refuses.
        """
        with TemporaryDirectory(prefix="vqa-eval-") as name:
            folder = Path(name)
            write_whole(folder / "results.json", self.format.results(self._unanswered()))
            answerability = self.format.answerability(self._unanswered())
            if answerability is not None:
                write_whole(folder / "answerability.json", answerability)
            rated = None if answerability is None else folder / "answerability.json"
            self.score(self.scoring_files(folder / "selection"), folder / "results.json", rated, ACCURACY_CODES[0])

    def _unanswered(self) -> Iterator[tuple[Example, Prediction]]:
        return ((example, Prediction(example.question_id)) for example in self.examples)


def load(name: str, sources: Sources) -> DataSet:
    """Read a data set.

    Raises:
        KeyError: there is none of this name.
        DataError: a file is missing or broken, or a question cannot be asked or is there twice.
        NoFileError: a file is not given.
    """
    form = FORMATS[name]()
    content = form.read(sources)
    with uncollected():
        examples = form.examples(sources, content)
    return DataSet(name, form, sources, examples, content=content)


def select(data: DataSet, only: Sequence[tuple[str, str]]) -> DataSet:
    """The questions of a data set that have certain values.

    Args:
        data: the data set.
        only: names with the values that they must have; of several values for a name any will do.

    Raises:
        RunError: no question has such a name, or none is left.
    """
    wanted: dict[str, set[str]] = {}
    for key, value in only:
        wanted.setdefault(key, set()).add(value)
    known = {*_OF_AN_EXAMPLE, *(key for example in data.examples for key in example.extra)} if wanted else set()
    for key in wanted:
        if key not in known:
            raise RunError(f"no question of the set has {key!r} to select by; there are {', '.join(sorted(known))}")
    left = [e for e in data.examples if all(_value(e, key) in values for key, values in wanted.items())]
    if not left:
        raise RunError("no question is left to ask; see --only")
    return _part(data, left)


def first_questions(data: DataSet, limit: int | None) -> DataSet:
    """The first so many questions; all of them for None."""
    return _part(data, data.examples[:limit])


def with_pictures(data: DataSet) -> tuple[DataSet, int]:
    """The questions whose picture's file is there, and how many were left out.

    Raises:
        RunError: none is.
    """
    there = _pictures(data)
    left = [example for example in data.examples if there[example.image]]
    if not left:
        raise _missing(there, "See --images and --image-name.")
    return _part(data, left), len(data.examples) - len(left)


def check_pictures(data: DataSet) -> None:
    """Make sure that every picture's file is there.

    Raises:
        RunError: pictures are missing; the message says how many and names the first.
    """
    there = _pictures(data)
    if not all(there.values()):
        raise _missing(there, "See --images and --image-name, or leave their questions out with --skip-missing.")


def _part(data: DataSet, examples: list[Example]) -> DataSet:
    return replace(data, examples=examples, whole=data.whole and len(examples) == len(data.examples))


def _pictures(data: DataSet) -> dict[Path, bool]:
    """Whether the file of each picture is there."""
    return {path: _is_file(path) for path in dict.fromkeys(example.image for example in data.examples)}


def _missing(there: Mapping[Path, bool], advice: str) -> RunError:
    missing = [path for path, found in there.items() if not found]
    shown = ", ".join(str(path) for path in missing[:_SHOWN]) + (", …" if len(missing) > _SHOWN else "")
    return RunError(f"{len(missing)} of {len(there)} pictures are missing: {shown}. {advice}")


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:
        return False  # a name that no file can have


def _value(example: Example, key: str) -> str | None:
    if key in example.extra:
        return example.extra[key]
    value = getattr(example, key) if key in _OF_AN_EXAMPLE else None
    return None if value is None else str(value)
