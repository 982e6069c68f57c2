"""From settings to a gateway: the one place where the parts are put together."""

from __future__ import annotations

from service.backends import Backend, ManifestError, load_manifest
from service.backends.classifier import ViltClassifier
from service.backends.cpus import available_cpus
from service.errors import SettingsError
from service.gateway.cache_levels import build_cache
from service.gateway.gateway import Gateway
from service.gateway.router import Router
from service.scheduling import WorkerThreads
from service.settings import Settings
from service.telemetry.metrics import Metrics


def build_gateway(settings: Settings, metrics: Metrics, *, measured: bool = True) -> Gateway:
    """A gateway that is not started yet.

    Args:
        settings: all of them.
        metrics: where it counts.
        measured: False where one question is all that will be asked: what only pays under load is left out.

    Raises:
        ManifestError: the model that the settings name is not there or cannot be used.
        SettingsError: no backend that is configured can serve the default policy.
    """
    manifest = load_manifest(settings.models_dir, settings.classifier)
    if manifest.model.kind != "classifier":
        raise ManifestError(f"{manifest.folder}: a {manifest.model.kind} cannot be served as the classifier")
    cpus = available_cpus()
    threads = min(settings.threads or cpus, cpus)
    decoder = WorkerThreads(settings.decode_threads or threads)
    classifier = ViltClassifier(
        manifest,
        device=settings.device,
        device_id=settings.device_id,
        threads=threads,
        max_batch=settings.max_batch_size,
        layout=settings.layout,
        measured=measured,
        observe_batch=metrics.batch_size.labels("classifier").observe,
    )
    backends: dict[str, Backend] = {classifier.name: classifier}
    if Router(backends, settings.policy).default_backend() is None:
        raise SettingsError(
            f"setting policy (VQA_POLICY): {settings.policy!r} needs a generator, and none is configured; use auto"
        )
    metrics.on_refresh(lambda: metrics.queue_depth.labels("decode").set(decoder.queued))
    metrics.on_refresh(lambda: metrics.queue_depth.labels("classifier").set(classifier.waiting))
    metrics.backend_threads.labels("classifier").set(threads)
    return Gateway(settings, backends, decoder, build_cache(settings, metrics), metrics)
