"""What is asked in each scenario, made once and written as files that the load generators read.

Pictures and questions come from a seed. Within one scenario no two requests that can be under way at once are the
same, so that a server that answers equal questions once has nothing to gain.
"""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from loadtest.peers.bare import Entry
from loadtest.peers.given import PATIENCE_S
from loadtest.peers.protocols import Protocol
from loadtest.pictures import camera, drawing, photo, stamped
from loadtest.questions import question

STEADY, ONE, PHOTOS, TEN, OVERLOAD = "steady", "one", "photos", "ten", "overload"
SCENARIOS = (STEADY, ONE, PHOTOS, TEN, OVERLOAD)
QUESTIONS = 10
"""Asked of one picture in `ten`."""
CHECKS = 5


@dataclass(frozen=True)
class Sizes:
    """How many different pictures."""

    camera: int = 200
    photos: int = 16
    many: int = 40


class Load:
    """Entries of each scenario, and their requests in each protocol.

    Args:
        folder: an empty one for the files.
        sizes: how many pictures of each kind.
    """

    def __init__(self, folder: Path, sizes: Sizes) -> None:
        self._folder = folder
        self._sizes = sizes

    @cache  # noqa: B019 - one object a run
    def entries(self, scenario: str) -> list[Entry]:
        """Pictures, each with its questions."""
        if scenario == PHOTOS:
            photos = [photo(seed) for seed in range(self._sizes.photos)]
            # Twice each, as files of their own: more than there are connections.
            return [(stamped(photos[k % len(photos)], k), [question(k)]) for k in range(2 * len(photos))]
        pictures = [camera(seed) for seed in range(self._sizes.camera)]
        if scenario == TEN:
            many = min(self._sizes.many, len(pictures))
            return [(pictures[k], [question(QUESTIONS * k + j) for j in range(QUESTIONS)]) for k in range(many)]
        return [(picture, [question(k)]) for k, picture in enumerate(pictures)]

    def checks(self, drawings: bool) -> list[Entry]:
        """Questions whose right answers are asked before anything is measured: of drawings, or as in `steady`."""
        if drawings:
            return [(drawing(k), [question(k)]) for k in range(CHECKS)]
        return self.entries(STEADY)[:CHECKS]

    def file(self, scenario: str) -> Path:
        """The entries, for the bare loop."""
        return self.pickled(scenario, self.entries(scenario))

    def pickled(self, name: str, entries: list[Entry]) -> Path:
        """Entries as a file."""
        path = self._folder / f"{name}.pickle"
        if not path.exists():
            path.write_bytes(pickle.dumps(entries))
        return path

    def requests(self, scenario: str, protocol: Protocol, name: str) -> tuple[Path, int]:
        """A folder of numbered requests of one question, whole as they are sent, and their number.

        Args:
            scenario: which; `one` asks as `steady` does.
            protocol: how.
            name: tells protocols apart.
        """
        source = scenario if scenario in (PHOTOS, TEN) else STEADY
        folder = self._folder / name / source
        asked = [(picture, text) for picture, questions in self.entries(source) for text in questions]
        if not folder.exists():
            folder.mkdir(parents=True)
            for number, (picture, text) in enumerate(asked):
                (folder / str(number)).write_bytes(protocol.ask(picture, text, 1000 * PATIENCE_S))
        return folder, len(asked)
