"""What runs when, and for whom: queues, batches, shared work and admission. Knows no question, picture or model.

All of it is pure asyncio on one event loop with the clock passed in, so that a test can set the time.
"""

from service.scheduling.admission import Admission, Ticket
from service.scheduling.batcher import Batcher
from service.scheduling.entry import Batched
from service.scheduling.service_time import ServiceTime
from service.scheduling.shared_work import SharedWork
from service.scheduling.threads import WorkerThreads, yield_to_event_loop
from service.scheduling.urgency import Urgency, once_abandoned

__all__ = [
    "Admission",
    "Batched",
    "Batcher",
    "ServiceTime",
    "SharedWork",
    "Ticket",
    "Urgency",
    "WorkerThreads",
    "once_abandoned",
    "yield_to_event_loop",
]
