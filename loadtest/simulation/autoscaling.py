"""How many replicas there should be, as Kubernetes' HorizontalPodAutoscaler decides it.

desired = ceil(replicas x metric / target), nothing within a tolerance of a tenth, a look every 15 s. Replicas that are
not ready yet, or have no metric yet, count as 0 when it would grow and as the target when it would shrink. Down goes to
the largest number desired within the last 300 s; up at once, to the double or by four, whichever is more. These are the
defaults of `autoscaling/v2`. Of several metrics the one that wants most decides.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum


class Signal(StrEnum):
    """What is looked at, a replica."""

    CPU = "CPU utilisation"
    IN_FLIGHT = "questions in flight"
    WAIT = "predicted wait, s"
    REQUESTS = "requests/s"


@dataclass(frozen=True)
class Scaling:
    """The parameters.

    Attributes:
        targets: of each signal that is looked at, the mean over the replicas.
        least, most: replicas.
        sync_s: between two looks.
        lag: looks by which a metric is older than the decision it is used for.
        window: looks over which it is averaged.
        tolerance: of the ratio; within it nothing happens.
        down_s: the stabilisation window for going down.
        pod_s: seconds from the decision until a replica's process starts; it becomes ready `start_s` later.
    """

    targets: Mapping[Signal, float]
    least: int
    most: int
    sync_s: float = 15.0
    lag: int = 1
    window: int = 2
    tolerance: float = 0.1
    down_s: float = 300.0
    pod_s: float = 30.0


class Autoscaler:
    """Decides at each look; remembers what it wanted."""

    def __init__(self, scaling: Scaling) -> None:
        self._scaling = scaling
        self._wanted: deque[tuple[float, int]] = deque()

    def decide(self, now: float, metrics: Mapping[Signal, Sequence[float]], replicas: int) -> int:
        """The number of replicas from now on.

        Args:
            now: seconds.
            metrics: of the replicas that have one, by signal.
            replicas: all that there are, those that are still starting included.
        """
        scaling = self._scaling
        proposals = [self._raw(metrics[signal], target, replicas) for signal, target in scaling.targets.items()]
        wanted = max(scaling.least, min(max(proposals), scaling.most))
        self._wanted.append((now, wanted))
        while self._wanted[0][0] < now - scaling.down_s:
            self._wanted.popleft()
        if wanted < replicas:
            return min(replicas, max(count for _, count in self._wanted))
        return min(wanted, max(2 * replicas, replicas + 4))

    def _raw(self, metrics: Sequence[float], target: float, replicas: int) -> int:
        """One metric's proposal."""
        if not metrics:
            return replicas
        ratio = sum(metrics) / len(metrics) / target
        if missing := replicas - len(metrics):
            assumed = 0.0 if ratio > 1 else target
            again = (sum(metrics) + missing * assumed) / replicas / target
            if (again - 1) * (ratio - 1) <= 0:
                # What is assumed of those that are missing would turn the direction round: nothing is done.
                return replicas
            ratio = again
        if abs(ratio - 1) <= self._scaling.tolerance:
            return replicas
        # A product that is whole but for its last bit is not rounded up.
        return math.ceil(replicas * ratio - 1e-9)
