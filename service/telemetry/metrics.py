"""All metrics of the service, in Prometheus' base units (seconds, bytes).

Labels take values from closed sets only (route templates, problem codes, stages): no text of a user, path or host ever
becomes a label, so the number of series has a bound.
"""

from __future__ import annotations

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

# The one list of latency buckets, in seconds: 1 ms to 60 s, about 2.2 times apart, so that latencies of every stage
# can be read on one axis and a quantile is off by at most a bucket.
LATENCY_BUCKETS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
PROBABILITY_BUCKETS = tuple(i / 20 for i in range(1, 21))
BATCH_BUCKETS = (1, 2, 4, 8, 16, 32, 64, 128, 256)

UNMATCHED_ROUTE = "unmatched"


# The time at which each series was made doubles their number and tells nobody anything.
disable_created_metrics()  # type: ignore[no-untyped-call]


class Metrics:
    """The instruments, made once for an application, in a registry of their own (so that tests can have several)."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        self.registry = registry or CollectorRegistry(auto_describe=True)
        ProcessCollector(registry=self.registry)
        PlatformCollector(registry=self.registry)
        GCCollector(registry=self.registry)
        r = self.registry
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
        self.stage_seconds = Histogram(
            "vqa_stage_seconds",
            "Time of a question's stages: read, decode_queue, decode, queue, inference, finish.",
            ("stage",),
            buckets=LATENCY_BUCKETS_S,
            registry=r,
        )
        self.in_flight = Gauge("vqa_questions_in_flight", "Questions admitted and not yet finished.", registry=r)
        self.buffered_bytes = Gauge("vqa_buffered_bytes", "Bytes of request bodies held in memory.", registry=r)
        self.queue_depth = Gauge(
            "vqa_queue_depth", "Work waiting, by queue: decode, classifier.", ("queue",), registry=r
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
        self.backend_up = Gauge("vqa_backend_up", "1 while a backend can answer.", ("backend",), registry=r)
        self.backend_threads = Gauge("vqa_backend_threads", "Threads for inference.", ("backend",), registry=r)
        self.model_info = Gauge(
            "vqa_model_info",
            "Always 1; the labels name the model that is served.",
            ("backend", "model", "revision", "calibration"),
            registry=r,
        )
        for stage in ("read", "decode_queue", "decode", "queue", "inference", "finish"):
            self.stage_seconds.labels(stage)
