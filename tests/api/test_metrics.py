"""What Prometheus sees, and what it never sees (OPS-02)."""

from __future__ import annotations

import secrets

from prometheus_client.parser import text_string_to_metric_families

from tests.support.pictures import drawn_circle
from tests.support.serving import Running, serving


def ask(running: Running, question: str = "is it red?", **data: object) -> int:
    files = {"image": drawn_circle()}
    return running.client.post("/answer", files=files, data={"question": question} | data).status_code


def series(running: Running) -> set[str]:
    return {
        f"{sample.name}{sorted(sample.labels.items())}"
        for family in text_string_to_metric_families(running.client.get("/metrics").text)
        for sample in family.samples
    }


def test_scanner_paths_make_no_series(served: Running) -> None:
    served.client.get("/favicon.ico")
    served.client.get("/metrics")
    before = series(served)
    for _ in range(500):
        assert served.client.get(f"/{secrets.token_hex(8)}.php").status_code == 404
    assert series(served) == before
    served.client.request("BREW", "/answer")
    assert len(series(served)) <= len(before) + 40, "an odd method is one method, 'other'"


def test_no_word_of_a_caller_is_a_label(served: Running) -> None:
    marker = "zebracrossing"
    for data in ({"choices": f"{marker},red"}, {"model": marker}, {"answer_set": marker}, {marker: "x"}):
        ask(served, f"is the {marker} red?", **data)
    served.client.post("/answer", json={"image": {"url": f"https://{marker}.example/"}, "question": marker})
    assert marker not in served.client.get("/metrics").text


def test_every_stage_and_outcome_is_counted() -> None:
    with serving() as running:
        assert ask(running) == 200
        assert ask(running, "") == 422
        assert ask(running, choices="a mongoose,red") == 501
        counted = running.metric
        assert counted("vqa_http_requests_total", route="/answer", method="POST", status="200") == 1
        assert counted("vqa_http_requests_total", route="/answer", status="422") == 1
        assert counted("vqa_problems_total", code="question_empty") == 1
        assert counted("vqa_problems_total", code="generator_unavailable") == 1
        assert counted("vqa_questions_total") == 3
        assert counted("vqa_questions_total", backend="classifier") == 1
        assert counted("vqa_batch_size_count", backend="classifier") == 1
        assert counted("vqa_confidence_count") == 1
        assert counted("vqa_answerable_total") == 1
        for stage in ("decode_queue", "decode", "queue", "inference", "finish"):
            assert counted("vqa_stage_seconds_count", stage=stage) == 1, stage
        assert counted("vqa_stage_seconds_count", stage="read") == 3
        assert counted("vqa_http_request_seconds_count", route="/answer") == 3
        assert counted("vqa_questions_in_flight") == 0
        assert counted("vqa_buffered_bytes") == 0
        assert counted("vqa_backend_threads", backend="classifier") >= 1
        assert counted("vqa_model_info", model="vilt-shapes") == 1


def test_probes_may_use_head(served: Running) -> None:
    for path in ("/livez", "/readyz", "/metrics", "/models", "/openapi.json", "/"):
        reply = served.client.head(path)
        assert (reply.status_code, reply.content) == (200, b"")


def test_the_loop_lag_is_measured(served: Running) -> None:
    import time

    before = served.metric("vqa_event_loop_lag_seconds_count")
    time.sleep(0.7)
    assert served.metric("vqa_event_loop_lag_seconds_count") > before


def test_metrics_are_in_the_text_format(served: Running) -> None:
    reply = served.client.get("/metrics")
    assert reply.headers["content-type"].startswith("text/plain")
    open_metrics = served.client.get("/metrics", headers={"Accept": "application/openmetrics-text; version=1.0.0"})
    assert open_metrics.headers["content-type"].startswith("application/openmetrics-text")
    assert open_metrics.text.endswith("# EOF\n")
    assert {family.name for family in text_string_to_metric_families(reply.text)} >= {
        "vqa_stage_seconds",
        "process_cpu_seconds",
    }
