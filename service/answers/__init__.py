"""What an answer is.

This room takes numbers and texts and knows neither backends nor HTTP. The way through it:

    Vocabulary (once a model)  +  AnswerSet (a request)  ->  Projection
    a model's scores  +  Projection  ->  Posterior       one shape for every kind of score; may be cached
    Posterior  +  Calibration  ->  finish  ->  Verdict   answer, confidence, answerability, abstention

`normalise` is the official VQA normal form, by which spellings of an answer are one answer; `vqa_accuracy` is
the official metric, which the confidence is fitted to.
"""

from service.answers.accuracy import ACCURACY_CODES, agreement, vqa_accuracy
from service.answers.answer_sets import (
    CHOICES,
    MAX_CHOICE_LENGTH,
    MAX_CHOICES,
    NAMED_SETS,
    AnswerSet,
)
from service.answers.answer_types import AnswerType, answer_type
from service.answers.calibration import Answerability, Calibration, Confidence
from service.answers.domain import Domain, read_domain
from service.answers.evidence import DIGITS, FEATURES, LISTED, Evidence, evidence_of, evidence_of_candidates
from service.answers.families import UNANSWERABLE, is_unanswerable, mostly_unanswerable
from service.answers.keys import match_key
from service.answers.maps import (
    EDGE,
    LINEAR_KEYS,
    BetaMap,
    CalibrationError,
    CalibrationMap,
    EdgedMap,
    IsotonicMap,
    LinearMap,
    LogisticMap,
    TemperatureMap,
    logit,
    read_linear,
    read_map,
)
from service.answers.normalise import (
    CODES,
    normalise,
    process_digits_articles,
    process_punctuation,
    strip_answer,
)
from service.answers.posterior import Posterior, ScoreKind
from service.answers.verdict import Candidate, Verdict, check_max_risk, finish
from service.answers.vocabulary import VOCABULARY, Projection, Vocabulary

__all__ = [
    "ACCURACY_CODES",
    "CHOICES",
    "CODES",
    "DIGITS",
    "EDGE",
    "FEATURES",
    "LINEAR_KEYS",
    "LISTED",
    "MAX_CHOICES",
    "MAX_CHOICE_LENGTH",
    "NAMED_SETS",
    "UNANSWERABLE",
    "VOCABULARY",
    "AnswerSet",
    "AnswerType",
    "Answerability",
    "BetaMap",
    "Calibration",
    "CalibrationError",
    "CalibrationMap",
    "Candidate",
    "Confidence",
    "Domain",
    "EdgedMap",
    "Evidence",
    "IsotonicMap",
    "LinearMap",
    "LogisticMap",
    "Posterior",
    "Projection",
    "ScoreKind",
    "TemperatureMap",
    "Verdict",
    "Vocabulary",
    "agreement",
    "answer_type",
    "check_max_risk",
    "evidence_of",
    "evidence_of_candidates",
    "finish",
    "is_unanswerable",
    "logit",
    "match_key",
    "mostly_unanswerable",
    "normalise",
    "process_digits_articles",
    "process_punctuation",
    "read_domain",
    "read_linear",
    "read_map",
    "strip_answer",
    "vqa_accuracy",
]
