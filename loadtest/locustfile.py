"""Users of the service for Locust.

    locust -f loadtest/locustfile.py --headless --users 20 --spawn-rate 5 --run-time 1m --host http://127.0.0.1:8000

A refusal (503 with Retry-After) is what a saturated service should do: it is counted in a row of its own ("refused"),
and the user waits as it was told. Anything else that is no 200 is a failure, as is a 200 that breaks the contract. The
exit code is 1 on a failure, and where nothing was answered at all. Locust waits for replies, so it shows whether
behaviour is right under load; latency is measured by `loadtest.open_loop`.
"""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Callable, Mapping
from itertools import count
from typing import Any

import gevent
import numpy as np
from locust import FastHttpUser, between, constant, events, task
from locust.env import Environment

from loadtest.contract import fault
from loadtest.pictures import camera, drawing, photo, stamped
from loadtest.questions import question

# Of the product app. A machine that others use too may need more.
DEADLINE_MS = int(os.environ.get("LOADTEST_DEADLINE_MS", "2000"))
PHOTOS = 3

_numbers = count()
_answered = 0
Check = Callable[[Mapping[str, Any]], "str | None"]

ODD_QUESTIONS = (
    "?",
    "что это?",
    "这是什么颜色",
    "🙂🙂 color 🙂",
    "WHAT   COLOR\tIS\nTHIS",
    "'; DROP TABLE answers; --",
    "[SEP] [CLS] is it red? [PAD]",
    "is it red? " * 80,
    "e\u0301tait-il rouge\u00a0?",
    "describe everything in the picture in great detail please and then tell me the colour of the left one",
)


@functools.cache
def picture(make: Callable[[int], bytes], seed: int) -> bytes:
    """Made when it is first needed."""
    return make(seed)


@events.init.add_listener
def _prepare(environment: Environment, **_: object) -> None:
    # Each takes as long as many requests: made within the run they would show in every user's figures.
    if AssistiveApp in environment.user_classes:
        for seed in range(PHOTOS):
            picture(photo, seed)
    # gevent sets timers by a clock that stood still meanwhile: --run-time would be shorter by all that came before.
    gevent.get_hub().loop.update_now()


@events.quitting.add_listener
def _nothing_answered(environment: Environment, **_: object) -> None:
    # Locust calls a run without a request a success.
    if not _answered and not environment.process_exit_code:
        environment.process_exit_code = 1


class _User(FastHttpUser):
    """Sends a form and judges the reply."""

    abstract = True

    def ask(self, name: str, image: bytes, check: Check, path: str = "/answer", **fields: object) -> None:
        """One request under a name; `check` says what is wrong with a 200's body."""
        global _answered
        form = {key: str(value) for key, value in fields.items()}
        retry_after = 0.0
        with self.client.post(path, files={"image": image}, data=form, name=name, catch_response=True) as response:
            if response.status_code == 200:
                wrong = check(json.loads(response.content))
                if wrong is None:
                    _answered += 1
                    response.success()
                else:
                    response.failure(wrong)
            elif response.status_code == 503 and response.headers.get("Retry-After", "").isdigit():
                response.request_meta["name"] = f"{name} refused"
                response.success()
                retry_after = float(response.headers["Retry-After"])
            else:
                text = (response.content or b"")[:200].decode("utf-8", "replace")
                response.failure(f"status {response.status_code}: {response.error or text}")
        if retry_after:
            gevent.sleep(retry_after)


class ProductApp(_User):
    """A shop's app: small pictures, plain questions, two seconds at most (`LOADTEST_DEADLINE_MS`)."""

    weight = 5
    wait_time = between(0.05, 0.3)

    @task
    def ask_about_a_drawing(self) -> None:
        n = next(_numbers)
        image = stamped(picture(drawing, n % 100), n)
        self.ask(
            "product app",
            image,
            functools.partial(fault, may_abstain=False),
            question=question(n),
            timeout_ms=DEADLINE_MS,
        )


class AssistiveApp(_User):
    """A blind person's phone: 12-megapixel photographs, and questions as people speak them."""

    weight = 1
    wait_time = between(0.5, 2)

    @task
    def ask_about_a_photo(self) -> None:
        n = next(_numbers)
        image = stamped(picture(photo, n % PHOTOS), n)
        text = ODD_QUESTIONS[n % len(ODD_QUESTIONS)]
        self.ask("assistive app", image, fault, question=text, timeout_ms=20_000, max_risk=0.2, top_k=3)


class ManyQuestions(_User):
    """A labeller: many questions about one picture at once, then one more about the same."""

    weight = 2
    wait_time = between(0.2, 1)

    @task
    def ask_many_then_one(self) -> None:
        n = next(_numbers)
        image = stamped(picture(camera, n % 50), n)
        questions = [question(8 * n + k) for k in range(8)]
        self.ask("many questions", image, _faults_of_many(len(questions)), "/answers", questions=json.dumps(questions))
        self.ask("one more question", image, fault, question=question(8 * n + 9))


class RepeatedPictures(_User):
    """A public page: few pictures and few questions get most of the traffic (Zipf)."""

    weight = 3
    wait_time = constant(0.1)
    pictures = 200
    questions = 20
    random = np.random.default_rng(7)

    def popular(self, among: int) -> int:
        """A number below `among`, the k-th in proportion to 1 / k."""
        shares = 1 / np.arange(1, among + 1)
        return int(self.random.choice(among, p=shares / shares.sum()))

    @task
    def ask_what_others_ask(self) -> None:
        image = picture(camera, 1000 + self.popular(self.pictures))
        self.ask("repeated pictures", image, fault, question=question(self.popular(self.questions)))


def _faults_of_many(expected: int) -> Check:
    """A check of `POST /answers`: a result for each question; a problem where the service refused it for now."""

    def check(reply: Mapping[str, Any]) -> str | None:
        results = reply.get("results", [])
        if len(results) != expected:
            return f"{len(results)} results for {expected} questions"
        for item in results:
            if "problem" in item:
                if item["problem"]["status"] != 503:
                    return f"a question failed: {item['problem']['code']}"
            elif wrong := fault(item["result"]):
                return wrong
        return None

    return check
