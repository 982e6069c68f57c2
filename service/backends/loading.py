"""From a model folder to a model that is warm and a layout of the threads that was measured on it."""

from __future__ import annotations

import logging
import time
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from typing import Literal

from service.backends.layout import Layout, Trial, Way, at_once, choose, describe, measure
from service.backends.manifest import ModelManifest
from service.backends.session import Device, give_back_memory
from service.backends.vilt import ViltModel

log = logging.getLogger(__name__)

LayoutSetting = Literal["auto", "wide", "narrow"]


@dataclass(frozen=True, slots=True)
class Loader:
    """How a model is to be loaded.

    Attributes:
        manifest: the model.
        device, device_id: where it runs.
        threads: that inferences may keep busy, all together.
        max_batch: most questions of one inference, whatever is measured; a model that cannot share one has it alone.
        layout: how the threads are laid out; `auto` measures what is best.
        measured: False where a question or two are all that will be asked: nothing is measured, and batches are not
            warmed up.
    """

    manifest: ModelManifest
    device: Device
    device_id: int
    threads: int
    max_batch: int
    layout: LayoutSetting
    measured: bool

    def load(self, pool: Executor) -> tuple[ViltModel, Layout]:
        """Load, measure and warm up; takes seconds.

        Args:
            pool: has at least `threads` threads free, which will be those that infer.

        Raises:
            ManifestError: the folder is not what its manifest says.
            SettingsError: the device is not to be had.
        """
        max_batch = self.max_batch if self.manifest.batches else 1
        threads = {way: self.threads if way is Way.WIDE else 1 for way in self._candidates()}
        model = ViltModel.open(self.manifest, self.device, self.device_id, threads)
        give_back_memory()
        model.check()
        if not self.measured:
            [way] = threads
            model.warm_up(way, 1)
            begun = time.perf_counter()
            model.check()
            return model, Layout.fixed(way, batch=max_batch, latency_s=time.perf_counter() - begun)
        trials = {way: Trial(self._runners(way), partial(_burst, model, way, pool)) for way in threads}
        found = measure(trials, max_batch)
        # The trials hold the model with all its sessions.
        del trials
        layout = choose(found)
        log.info(
            "%s with %d threads: %s when idle, %s when busy, batches of up to %d; measured: %s",
            self.manifest.model.name,
            self.threads,
            layout.idle,
            layout.busy,
            layout.batch[layout.busy],
            describe(found),
        )
        model = model.keeping(layout.ways)
        give_back_memory()
        for way in layout.ways:
            at_once(pool, layout.runners[way], partial(model.warm_up, way, layout.batch[way]))
        return model, layout

    def _candidates(self) -> tuple[Way, ...]:
        if self.layout != "auto":
            return (Way(self.layout),)
        # A GPU runs one inference at a time whoever asks; with one thread there is nothing to lay out.
        if self.device != "cpu" or self.threads == 1 or not self.measured:
            return (Way.WIDE,)
        return (Way.WIDE, Way.NARROW)

    def _runners(self, way: Way) -> int:
        return self.threads if way is Way.NARROW and self.device == "cpu" else 1


def _burst(model: ViltModel, way: Way, pool: Executor, runners: int, batch: int, runs: int) -> float:
    """Have each of `runners` threads do `runs` inferences of the usual shape; seconds of one in the quickest thread.

    Each is timed on its own: to wait for the last would count what held that one up, against all of them.
    """
    items = [model.grey()] * batch

    def work() -> float:
        begun = time.perf_counter()
        for _ in range(runs):
            model.logits(items, way)
        return (time.perf_counter() - begun) / runs

    return min(at_once(pool, runners, work))
