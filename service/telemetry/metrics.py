"""All metrics of the service, in Prometheus' base units (seconds, bytes).

Labels take values from closed sets only (route templates, problem codes, stages): no text of a user, path or host ever
becomes a label, so the number of series has a bound.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    GCCollector,
    Histogram,
    PlatformCollector,
    ProcessCollector,
    disable_created_metrics,
)

from service.telemetry.multiprocess import WorkersCollector

# The one list of latency buckets, in seconds: 1 ms to 60 s, about 2.2 times apart, so that latencies of every stage
# can be read on one axis and a quantile is off by at most a bucket.
LATENCY_BUCKETS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
PROBABILITY_BUCKETS = tuple(i / 20 for i in range(1, 21))
BATCH_BUCKETS = (1, 2, 4, 8, 16, 32, 64, 128, 256)

UNMATCHED_ROUTE = "unmatched"


# The time at which each series was made doubles their number and tells nobody anything.
disable_created_metrics()  # type: ignore[no-untyped-call]


class Metrics:
    """The instruments, made once for an application, in a registry of their own (so that tests can have several).

    A gauge is set, by whoever changes it or by a callback of `on_refresh`; it never is a function, since among several
    workers another process must be able to read it.

    Args:
        workers_dir: where several workers keep their numbers (PROMETHEUS_MULTIPROC_DIR, set before this process began);
            `registry` then gives the sum over all of them. None: this process is the only one.
    """

    def __init__(self, workers_dir: Path | None = None) -> None:
        self._refreshers: list[Callable[[], None]] = []
        r: CollectorRegistry | None
        if workers_dir is None:
            self.registry = r = CollectorRegistry(auto_describe=True)
            # CPU, memory and garbage of one process; of several they would be those of whichever was scraped.
            ProcessCollector(registry=r)
            PlatformCollector(registry=r)
            GCCollector(registry=r)
        else:
            # The instruments only write their files, and the collector reads those of all workers.
            self.registry, r = CollectorRegistry(), None
            self.registry.register(WorkersCollector(workers_dir))
        self.http_requests = Counter(
            "vqa_http_requests",
            "HTTP requests by route template, method and status.",
            ("route", "method", "status"),
            registry=r,
        )
        self.http_seconds = Histogram(
            "vqa_http_request_seconds",
            "Time of an HTTP request, body included.",
            ("route",),
            buckets=LATENCY_BUCKETS_S,
            registry=r,
        )
        self.questions = Counter(
            "vqa_questions",
            "Questions by outcome: answered, unanswerable, abstained, or a problem's code.",
            ("backend", "outcome"),
            registry=r,
        )
        self.problems = Counter("vqa_problems", "Problems told to callers, by code.", ("code",), registry=r)
        stage_seconds = Histogram(
            "vqa_stage_seconds",
            "Time of a question's stages: read, decode_queue, decode, queue, inference, finish.",
            ("stage",),
            buckets=LATENCY_BUCKETS_S,
            registry=r,
        )
        self.stages = {
            stage: stage_seconds.labels(stage)
            for stage in ("read", "decode_queue", "decode", "queue", "inference", "finish")
        }
        """By name: looked up once, and not for every question."""
        # The modes say what several workers' values give; "live": those of a worker that has died no longer count.
        self.in_flight = Gauge(
            "vqa_questions_in_flight",
            "Questions admitted and not yet finished.",
            multiprocess_mode="livesum",
            registry=r,
        )
        self.buffered_bytes = Gauge(
            "vqa_buffered_bytes", "Bytes of request bodies held in memory.", multiprocess_mode="livesum", registry=r
        )
        self.queue_depth = Gauge(
            "vqa_queue_depth",
            "Work waiting, by queue: decode, classifier.",
            ("queue",),
            multiprocess_mode="livesum",
            registry=r,
        )
        self.batch_size = Histogram(
            "vqa_batch_size", "Questions in one inference.", ("backend",), buckets=BATCH_BUCKETS, registry=r
        )
        self.confidence = Histogram(
            "vqa_confidence",
            "Calibrated confidence of answers.",
            ("backend",),
            buckets=PROBABILITY_BUCKETS,
            registry=r,
        )
        self.answerable = Counter(
            "vqa_answerable",
            "Replies by the answerability flag: true, false, unknown.",
            ("backend", "answerable"),
            registry=r,
        )
        self.loop_lag_seconds = Histogram(
            "vqa_event_loop_lag_seconds",
            "How late the event loop ran a timer.",
            buckets=LATENCY_BUCKETS_S,
            registry=r,
        )
        self.predicted_wait = Histogram(
            "vqa_predicted_wait_seconds",
            "Time that a question was predicted to take when it asked to be let in.",
            buckets=LATENCY_BUCKETS_S,
            registry=r,
        )
        self.shed = Counter("vqa_questions_shed", "Batch questions that made way for interactive ones.", registry=r)
        self.backend_up = Gauge(
            "vqa_backend_up",
            "1 while a backend can answer (that of every worker, where there are several).",
            ("backend",),
            multiprocess_mode="livemin",
            registry=r,
        )
        self.backend_threads = Gauge(
            "vqa_backend_threads",
            "Threads for inference.",
            ("backend",),
            multiprocess_mode="livemax",
            registry=r,
        )
        self.model_info = Gauge(
            "vqa_model_info",
            "Always 1; the labels name the model that is served.",
            ("backend", "model", "revision", "calibration"),
            multiprocess_mode="livemax",
            registry=r,
        )
        self.cache_lookups = Counter(
            "vqa_cache_lookups",
            "Questions by what the cache gave: hit, miss, coalesced (joined one under way), bypassed (as asked).",
            ("result",),
            registry=r,
        )
        self.shared_cache = Counter(
            "vqa_shared_cache",
            "Look-ups in the shared cache: hit, miss, error (failed puts, and look-ups left out after one, included).",
            ("result",),
            registry=r,
        )
        self.cache_bytes = Gauge(
            "vqa_cache_bytes", "Bytes of answers kept in memory, about.", multiprocess_mode="livesum", registry=r
        )
        self.cache_entries = Gauge(
            "vqa_cache_entries", "Answers kept in memory.", multiprocess_mode="livesum", registry=r
        )
        self.cache_evictions = Counter(
            "vqa_cache_evictions", "Answers that were forgotten to make room for others.", registry=r
        )
        for result in ("hit", "miss", "coalesced", "bypassed"):
            self.cache_lookups.labels(result)
        for result in ("hit", "miss", "error"):
            self.shared_cache.labels(result)

    def on_refresh(self, callback: Callable[[], None]) -> None:
        """Have `callback` called, on the event loop, whenever gauges should be set to what is true now."""
        self._refreshers.append(callback)

    def refresh(self) -> None:
        """Set the gauges that nobody sets on each change."""
        for callback in self._refreshers:
            callback()


async def keep_fresh(metrics: Metrics, *, interval_s: float = 0.25) -> None:
    """Refresh until cancelled, so that a scrape that another worker answers finds this one's gauges as they are."""
    while True:
        metrics.refresh()
        await asyncio.sleep(interval_s)
