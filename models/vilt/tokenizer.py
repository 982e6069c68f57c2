"""A small BERT WordPiece tokenizer for English questions, in the format of Hugging Face's tokenizers.

`python -m models.vilt.tokenizer --out tokenizer.json` trains one. The trainer breaks ties between equally frequent
pieces at random, so that two runs differ in a few pieces: a training run starts from a given tokenizer.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path

from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

from models.shapes.examples import Split, draw_example, stream
from models.shapes.topics import Asker

SPECIAL_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
VOCAB_SIZE = 640


def train_tokenizer(questions: Iterable[str], vocab_size: int = VOCAB_SIZE) -> Tokenizer:
    """WordPiece over lower-cased text. Every printable ASCII character is a token, so ASCII is never [UNK]."""
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]", max_input_chars_per_word=100))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece(prefix="##")
    trainer = trainers.WordPieceTrainer(
        vocab_size=vocab_size,
        min_frequency=2,
        special_tokens=list(SPECIAL_TOKENS),
        initial_alphabet=[chr(c) for c in range(33, 127)],
        continuing_subword_prefix="##",
        show_progress=False,
    )
    # Doubled letters and digits bring the continuation pieces ("##a") of characters that no question continues with.
    doubled = [chr(c) * 2 for c in range(33, 127) if chr(c).isalnum()]
    tokenizer.train_from_iterator([*questions, *doubled], trainer)
    cls, sep = (tokenizer.token_to_id(t) for t in ("[CLS]", "[SEP]"))
    tokenizer.post_processor = processors.BertProcessing(sep=("[SEP]", sep), cls=("[CLS]", cls))
    return tokenizer


def training_questions(seed: int, pictures: int = 4000) -> list[str]:
    """Questions of the generator's training split: the tokenizer's corpus (4,000 pictures, 8 questions each)."""
    asker = Asker(Split.TRAIN.group)
    drawn = zip(range(pictures), stream(Split.TRAIN, seed), strict=False)
    return [q.text for _, rng in drawn for q in draw_example(rng, asker, 8).questions]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="the tokenizer.json to write")
    parser.add_argument("--seed", type=int, default=0, help="of the generator's training split; default 0")
    arguments = parser.parse_args()
    tokenizer = train_tokenizer(training_questions(arguments.seed))
    tokenizer.save(str(arguments.out))
    print(f"{arguments.out}: {tokenizer.get_vocab_size()} tokens")


if __name__ == "__main__":
    main()
