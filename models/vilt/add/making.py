"""The steps from a checkpoint to a model in its place, in the export environment."""

from __future__ import annotations

import json
import logging
import os
import pickle
import shutil
import warnings
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch
import transformers
from safetensors import SafetensorError
from transformers import BertTokenizerFast, ViltForQuestionAnswering

from models.vilt.add.agreement import QuestionSet, agreement
from models.vilt.add.card import card, licence_of
from models.vilt.add.folder import PROCESSOR, README, TOKENIZER, Described, check_tokenizer
from models.vilt.add.request import AddError, Request
from models.vilt.add.result import PARITY, QUANTISATION, summary
from models.vilt.add.scratch import scratch
from models.vilt.add.source import Source
from models.vilt.checkpoint import Checkpoint
from models.vilt.package import About, assemble
from models.vilt.parity import ParityError
from models.vilt.place import put_in_place
from models.vilt.quantise import quantised_copy
from service.backends.cpus import available_cpus
from service.backends.layout import Way
from service.backends.manifest import read_manifest
from service.backends.vilt import ViltModel

Say = Callable[[str], None]

_UNREADABLE = (SafetensorError, pickle.UnpicklingError, zipfile.BadZipFile, EOFError, RuntimeError, ValueError)
# What transformers and torch were seen to raise on a configuration that makes no sense.
_UNUSABLE = (TypeError, LookupError, ArithmeticError, AssertionError, AttributeError, ImportError)


def add(request: Request, source: Source, say: Say) -> None:
    """Make the model and put it into its place.

    Raises:
        AddError: no model can be made of this source.
        DataError, RunError: the questions cannot be used.
        OSError: something cannot be written.
    """
    _quieten()
    threads = available_cpus()
    torch.set_num_threads(threads)
    questions = _questions(request)
    with scratch(request.models_dir) as folder:
        checkpoint = _checkpoint(source.described, folder)
        say(f"loading the weights of {request.origin}")
        model = load_whole(source)
        say(f"exporting {model.num_parameters():,} parameters to ONNX, then comparing with PyTorch")
        made = folder / "fp32"
        made.mkdir()
        try:
            parity = assemble(checkpoint, model, _about(request, source), made)
        except ParityError as error:
            raise AddError(f"{request.origin}: {error}") from error
        except (ValueError, RuntimeError) as error:
            raise AddError(f"{request.origin}: it cannot be exported: {_first_line(error)}") from error
        del model
        say(f"the largest difference of a score is {parity['largest_difference']:.1e}")
        if questions is not None:
            made = _quantised(request.name, made, questions, threads, say)
        _finish(made, source.described.labels)
        put_in_place(made, request.out, kept=(), wanted=partial(_still_wanted, request, source.revision))


def load_whole(source: Source) -> ViltForQuestionAnswering:
    """The model, fp32; every weight of it out of the files.

    Raises:
        AddError: a file is damaged, or has not the weights that the configuration asks for.
    """
    folder, named = source.folder, ", ".join(path.name for path in source.weights)
    try:
        model, found = ViltForQuestionAnswering.from_pretrained(
            folder,
            dtype=torch.float32,
            local_files_only=True,
            output_loading_info=True,
            # Told below, in words.
            ignore_mismatched_sizes=True,
        )
    except _UNREADABLE as error:
        raise AddError(f"{folder}: the weights ({named}) cannot be read: {_first_line(error)}") from error
    except _UNUSABLE as error:
        why = f"{type(error).__name__}: {_first_line(error)}"
        raise AddError(f"{folder}: no model can be made as config.json says: {why}") from error
    except OSError as error:
        if error.errno is not None:
            raise
        raise AddError(f"{folder}: the weights ({named}) cannot be read: {_first_line(error)}") from error
    if other := sorted(found["mismatched_keys"]):
        if all(name.startswith("classifier.") for name in other):
            labels = len(source.described.labels)
            raise AddError(
                f"{folder}: config.json names {labels:,} labels, and the head's weights are of another number"
            )
        raise AddError(f"{folder}: {other[0]} has another shape in the weights than config.json asks for")
    if missing := sorted(found["missing_keys"]):
        raise AddError(f"{folder}: {len(missing)} weights are not in the files, {missing[0]} the first of them")
    return model.eval()


def _still_wanted(request: Request, revision: str) -> bool:
    """Whether nobody else has made the model meanwhile; one that was made of the same is left where it may be.

    Raises:
        AddError: it was made of something else.
    """
    request.check()
    if not (request.keep and request.out.exists()):
        return True
    request.check_same(read_manifest(request.out), revision)
    return False


def _checkpoint(described: Described, scratch_folder: Path) -> Checkpoint:
    """Where tokenizer and processor lie; a tokenizer.json is made where there is only a vocabulary.

    Raises:
        AddError: none can be made of it.
    """
    file = described.folder / TOKENIZER
    if described.vocabulary_only:
        file = scratch_folder / TOKENIZER
        try:
            tokenizer = BertTokenizerFast.from_pretrained(described.folder, local_files_only=True)
        except (ValueError, TypeError, KeyError, OSError) as error:
            raise AddError(
                f"{described.folder}: no tokenizer can be made of vocab.txt: {_first_line(error)}"
            ) from error
        tokenizer.backend_tokenizer.save(str(file))
        check_tokenizer(file, described.vocabulary_size)
    return Checkpoint(described.folder, file, described.folder / PROCESSOR, described.max_tokens)


def _about(request: Request, source: Source) -> About:
    licence = request.licence or licence_of(source.folder / README)
    description = request.description or f"ViLT with {len(source.described.labels):,} answers, from {request.origin}"
    if request.precision == "int8":
        description += ", int8"
    return About(request.name, request.scores, description, licence, request.demo, request.origin, source.revision)


def _questions(request: Request) -> QuestionSet | None:
    if request.precision == "fp32":
        return None
    if request.questions is None:
        return QuestionSet.made(request.agreement_questions)
    return QuestionSet.of_file(request.questions, request.agreement_questions)


def _quantised(name: str, fp32: Path, questions: QuestionSet, threads: int, say: Say) -> Path:
    """The int8 copy of a folder, with how far it agrees."""
    made = fp32.with_name("int8")
    say("quantising to int8")
    manifest = quantised_copy(fp32, made, name)
    shutil.copyfile(fp32 / PARITY, made / PARITY)
    say(f"asking both graphs {questions.count:,} questions ({questions.about})")
    found = agreement(read_manifest(fp32), manifest, questions, threads)
    same, share, answers = found["same_answer"], 100 * found["share"], found["answers"]
    say(f"the same best answer to {same:,} of them ({share:.1f} %), {answers:,} different ones")
    say(f"the largest difference of a probability is {found['largest_difference']:.4f}")
    (made / QUANTISATION).write_text(json.dumps(found, indent=1) + "\n", "utf-8")
    return made


def _finish(made: Path, labels: list[str]) -> None:
    """Write the card, and make sure that the folder can be served."""
    manifest = read_manifest(made)
    (made / "MODEL_CARD.md").write_text(card(manifest, labels, summary(made)), "utf-8")
    model = ViltModel.open(manifest, "cpu", 0, {Way.WIDE: 1})
    model.check()
    model.warm_up(Way.WIDE, 1)  # as every start does


def _quieten() -> None:
    """Warnings of the exporter's libraries are about their own insides."""
    warnings.filterwarnings("ignore")
    logging.getLogger("optimum").setLevel(logging.ERROR)
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    os.environ["TOKENIZERS_PARALLELISM"] = "false"


def _first_line(error: BaseException) -> str:
    return next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
