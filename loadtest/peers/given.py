"""What the driver gives a contestant's process, in the environment: `PEERS_…`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast

from loadtest.peers.answer import Model

Comparison = Literal["same", "hour"]
HOST = "127.0.0.1"
# How long a question may take where its deadline is not what is measured: the timeout of all, whatever their default.
PATIENCE_S = 60


@dataclass(frozen=True)
class Given:
    """How to serve.

    Attributes:
        comparison: `same` work for all, or what a user would write in an `hour`.
        model: the model's folder; a checkpoint in the hub's format for `hour`.
        port: to listen on, on the loopback only.
        workers: processes that answer.
        threads: of each one's inference.
        max_in_flight: most requests that may be inside at once before new ones are refused; None is the peer's default.
        deadline_s: seconds after which nobody waits for a reply any more; None is `PATIENCE_S`.
    """

    comparison: Comparison
    model: Path
    port: int
    workers: int
    threads: int = 1
    max_in_flight: int | None = None
    deadline_s: float | None = None

    def environment(self) -> dict[str, str]:
        """As variables."""
        given = {name: value for name, value in vars(self).items() if value is not None}
        given["model"] = self.model.resolve()  # the process runs in a folder of its own
        return {f"PEERS_{name.upper()}": str(value) for name, value in given.items()}

    @classmethod
    def read(cls, environment: Mapping[str, str] = os.environ) -> Given:
        """From the variables that `environment` made."""

        def value(name: str) -> str | None:
            return environment.get(f"PEERS_{name.upper()}")

        max_in_flight, deadline_s = value("max_in_flight"), value("deadline_s")
        return cls(
            comparison=cast(Comparison, environment["PEERS_COMPARISON"]),
            model=Path(environment["PEERS_MODEL"]),
            port=int(environment["PEERS_PORT"]),
            workers=int(environment["PEERS_WORKERS"]),
            threads=int(value("threads") or cls.threads),
            max_in_flight=int(max_in_flight) if max_in_flight else None,
            deadline_s=float(deadline_s) if deadline_s else None,
        )

    def load(self) -> Model:
        """The model of the comparison, with so many threads; torch is imported for `hour` only."""
        if self.comparison == "same":
            from loadtest.peers.work import Work

            return Work(self.model, self.threads)
        from loadtest.peers.hour import Hour

        return Hour(self.model, self.threads)
