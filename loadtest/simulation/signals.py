"""What an autoscaler sees of the replicas: means since the last look, late and averaged as metrics are."""

from __future__ import annotations

from collections.abc import Iterable

from loadtest.simulation.autoscaling import Scaling, Signal
from loadtest.simulation.replica import Replica


class Signals:
    """All signals of the replicas that are ready.

    Args:
        scaling: which signal, how old, how long averaged.
        cores: of a replica.
    """

    def __init__(self, scaling: Scaling, cores: int) -> None:
        self._scaling, self._cores = scaling, cores
        self._history: dict[Replica, list[dict[Signal, float]]] = {}
        self._before: dict[Replica, tuple[float, ...]] = {}

    def look(self, replicas: Iterable[Replica], now: float) -> dict[Signal, list[float]]:
        """By signal, the metrics of the replicas that have one; called once a look."""
        scaling = self._scaling
        metrics: dict[Signal, list[float]] = {signal: [] for signal in scaling.targets}
        history = {}
        for replica in replicas:
            past = history[replica] = self._history.get(replica, [])
            past.append(self._means(replica, now))
            if seen := past[: len(past) - scaling.lag][-scaling.window :]:
                for signal, values in metrics.items():
                    values.append(sum(means[signal] for means in seen) / len(seen))
        self._history = history
        return metrics

    def _means(self, replica: Replica, now: float) -> dict[Signal, float]:
        """Since the last look."""
        replica.account()
        sums = (now, replica.busy_core_s, replica.in_flight_s, replica.waits_s, replica.waits, replica.asked)
        before = self._before.get(replica, (now - self._scaling.sync_s, 0.0, 0.0, 0.0, 0, 0))
        self._before[replica] = sums
        seconds, busy_s, in_flight_s, waits_s, waits, asked = (a - b for a, b in zip(sums, before, strict=True))
        return {
            Signal.CPU: busy_s / (seconds * self._cores),
            Signal.IN_FLIGHT: in_flight_s / seconds,
            Signal.WAIT: waits_s / waits if waits else 0.0,
            Signal.REQUESTS: asked / seconds,
        }
