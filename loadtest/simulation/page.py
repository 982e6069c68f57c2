"""The page: tables with what is to be known when reading them; texts say only what holds whatever was measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from loadtest.report import Table
from loadtest.simulation.cost import PRICE_PER_VCPU_HOUR
from loadtest.simulation.experiments import FLEET, POPULAR, TARGET_LOAD
from loadtest.simulation.limits import (
    EXPONENT,
    MTBF_DAYS,
    NIC_GBIT,
    POPULAR_KEYS,
    POPULAR_SHARE,
    SCRAPE_S,
    SHARED_BYTES,
)
from loadtest.simulation.validation import CACHE_BYTES, CLIENTS, FACTOR
from loadtest.simulation.workload import Workload

Rows = Sequence[Mapping[str, Any]]


def _usual() -> str:
    usual = Workload(1.0, 1.0)
    sizes = ", ".join(f"{share:.0%} {size}" for size, share in usual.sizes.items())
    timeouts = ", ".join(f"{share:.0%} {seconds:g} s" for seconds, share in usual.timeouts_s.items())
    return f"Pictures: {sizes}. Deadlines: {timeouts}; those with the longer one wait behind the others."


TEXTS = {
    "Beside the formulas": "Mean waits of M/M/1 and M/D/1 (Pollaczek and Khinchine), M/M/c (Erlang C), hit ratio of "
    "an LRU cache (Che's approximation). A service takes a second. Beside this every run checks itself: each question "
    "ended as exactly one of in time, late, refused, lost; and Little's law holds to a millionth.",
    "Beside the real service": f"`python -m loadtest.overload`, simulated: {CLIENTS} clients for the capacity, then "
    f"{FACTOR:g} times as much, 2 s deadlines. The real capacity shares its cores with the load generator and with "
    "threads of the kernel that the stage times leave out; batches (for small models) are not simulated. "
    "Where the real capacity is the smaller one, fleets and costs on this page are too small in the same proportion.",
    "Autoscaling": "A day squeezed into 90 minutes: slopes are sixteen times as steep as real ones, and replica-hours "
    "are to be compared only. From 0.4 to 1.6 of the mean; three times the rate for ten minutes near the peak. "
    "Kubernetes' HPA: every 15 s, tolerance 0.1, 300 s before it goes down; metrics of 30 s that are 15 s old; 30 s "
    "until a pod's process starts, then the measured start. Every target is what the signal is at "
    f"{TARGET_LOAD:.0%} load in a fleet of fixed size, but for the row that says otherwise. No cache. "
    "Why they differ: requests/s sees what is refused, so it asks for the right number at once, but believes that "
    "every request costs the same. CPU utilisation cannot exceed 100 %, so it asks for at most 1/target times as many "
    "replicas until those have started. In flight and predicted wait rise far more than the load does near saturation, "
    "so they ask for far too many, and 300 s pass before those go. One run each, of the "
    "same questions: a swing that happens to be up when the crowd comes looks better than it is.",
    "Size": f"Power of two choices, no cache, no repeated pictures. {_usual()}",
    "Routing": f"{FLEET} replicas with {CACHE_BYTES // 2**20} MiB of answers each; sessions of two questions on "
    f"average; {POPULAR['popular_share']:.0%} of the sessions about {POPULAR['pictures']:,} pictures of everybody's "
    f"(Zipf {POPULAR['exponent']:g}), {POPULAR['common']} questions each. Load is relative to what the fleet can do "
    "without a cache. Affinity: rendezvous hashing with loads bounded to 1.25 of the mean. Figures of the last two "
    f"thirds of each run. {_usual()}",
    "Rolling restart": f"{FLEET} replicas at 60 % load are replaced one by one within two minutes, in the middle of "
    "the run; the new ones have empty caches and, as pods of a Deployment, new names, so that affinity moves pictures.",
    "Cost": f"Assumption: a vCPU costs {PRICE_PER_VCPU_HOUR:g} an hour (half and double beside it), and is what was "
    "measured as a core. Cores are busy for the share in the summary, at which the deadlines hold in the table of "
    "sizes. The front (HTTP, digest, reply) is what a cached answer costs. There is no row for a generator of billions "
    "of parameters: nothing of that size was measured.",
    "Bandwidth": f"Questions x bytes of a picture x 8, all through one gateway, in NICs of {NIC_GBIT:g} Gbit/s filled "
    f"to the brim. Fleets at {TARGET_LOAD:.0%} load.",
    "Cache": f"Che's approximation, {POPULAR_SHARE:.0%} of the questions among {POPULAR_KEYS:,} (Zipf {EXPONENT:g}), "
    "the others asked once and taking places all the same. Without affinity every replica remembers the same; the "
    "number of replicas changes nothing. `seconds_to_fill`: a cache's entries over its misses a second. The shared one "
    "is said to keep only what is asked again, the best case.",
    "Shared Redis": "Behind the memory caches: a miss is a GET, a computed answer a SET. Over what one Redis did a "
    f"second here with values of this size (its commands run in one thread); {SHARED_BYTES / 1e9:g} GB.",
    "Affinity router": "Rendezvous hashing weighs every replica for each question, so cores grow with the square of "
    "the fleet: questions a second grow with it, and so does the time for each. Measured in this run, in one thread.",
    "Operations": f"Series of one replica's `/metrics` x replicas, scraped every {SCRAPE_S:g} s; one crash a replica "
    f"in {MTBF_DAYS:g} days (assumption); restarts with the measured start; each forgets every answer in memory.",
}
ORDER = {
    "Beside the formulas": "theory",
    "Beside the real service": "overload",
    "Autoscaling": "autoscaling",
    "Size": "scale",
    "Routing": "routing",
    "Rolling restart": "rolling",
    "Cost": "cost",
    "Bandwidth": "bandwidth",
    "Cache": "cache",
    "Shared Redis": "redis",
    "Affinity router": "router",
    "Operations": "operations",
}


def tables(found: Mapping[str, Rows]) -> list[Table]:
    """All tables, in the order of the page; those that have no rows are left out."""
    return [Table(title, TEXTS[title], found[name]) for title, name in ORDER.items() if found.get(name)]
