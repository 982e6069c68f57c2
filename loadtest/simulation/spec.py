"""What a simulated fleet is: replicas, router, failures, restarts, autoscaler."""

from __future__ import annotations

from dataclasses import dataclass

from loadtest.simulation.autoscaling import Scaling
from loadtest.simulation.machine import Machine
from loadtest.simulation.routing import Policy


@dataclass(frozen=True)
class Failures:
    """How replicas fail.

    Attributes:
        mtbf_s: mean seconds between two crashes of one replica, exponentially distributed.
        detect_s: until the router knows; what it sends there meanwhile fails.
        restart_s: from the crash until it is ready again, with an empty cache.
        retry: whether what was lost is asked once more, of another replica.
    """

    mtbf_s: float
    detect_s: float = 5.0
    restart_s: float = 40.0
    retry: bool = True


@dataclass(frozen=True)
class Spec:
    """A fleet.

    Attributes:
        machine: of each replica.
        replicas: at the start.
        policy: of the router.
        start_s: of a process until it is ready.
        scaling: an autoscaler, if any.
        failures: crashes, if any; of the replicas of the start.
        slow: so many replicas, the first ones, take `slowdown` times as long from the start on (a gray failure).
        restart_from_s, restart_every_s: a rolling restart: from then on one replica after the other is drained and
            replaced by one with an empty cache, so many seconds apart.
        stale_s: age of the loads that the router sees.
        retry_refused: whether a refusal is tried once more, at another replica.
        warm_s: figures are of the questions that come after so many seconds.
    """

    machine: Machine
    replicas: int
    policy: Policy = Policy.TWO_CHOICES
    start_s: float = 10.0
    scaling: Scaling | None = None
    failures: Failures | None = None
    slow: int = 0
    slowdown: float = 2.0
    restart_from_s: float | None = None
    restart_every_s: float = 10.0
    stale_s: float = 0.0
    retry_refused: bool = False
    warm_s: float = 0.0
