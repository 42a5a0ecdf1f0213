"""Prometheus metrics of all campaigns of a database, and the server that Prometheus scrapes.

All values are read from the database at every scrape, so campaigns that other processes run are included.
"""

import socket
import sys
from collections.abc import Callable, Iterable, Iterator
from socketserver import ThreadingMixIn
from typing import TYPE_CHECKING, get_args
from urllib.parse import parse_qsl
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from sqlalchemy.orm import Session

from winnow.flows.reports.default_database import reading
from winnow.flows.reports.http_access import Gate, bearer
from winnow.storage.errors import StorageError
from winnow.storage.json_types import JsonObject
from winnow.storage.queries import unscored as unscored_views
from winnow.storage.records import campaigns as campaign_records
from winnow.storage.records.campaigns import loads_by_model
from winnow.storage.records.record_types import CampaignRecord
from winnow.tasks.answer.model import Outcome
from winnow.tasks.campaign.look import Look
from winnow.tasks.queries.status import State, campaign_status

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

STATES: tuple[State, ...] = get_args(State)
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)

_COUNTERS = {
    "rounds": "Finished rounds.",
    "comparisons": "Comparisons; outcome is scored or unscored, with the reason if unscored.",
    "generations": "New outputs of the campaign, including judges' replies.",
    "tokens": "Tokens of these outputs; direction is input or output.",
    "engine_seconds": "Engine time for these outputs.",
    "load_seconds": "Time spent waiting for models to load.",
}
_GAUGES = {
    "campaign_state": "1 for the current state of the campaign.",
    "campaign_outcome": "1 for the outcome of a finished campaign; claim is the kind of its guarantee.",
    "candidates": "Candidates of the campaign.",
    "grid_comparisons": "Comparisons that an exhaustive evaluation would need.",
    "best_estimate": "Estimate of the best candidate.",
    "best_lower": "Lower end of the best candidate's interval.",
    "best_upper": "Upper end of the best candidate's interval.",
    "best_held_out": "Mean of the best candidate on the held-out examples, once all are scored.",
    "budget_spent": "Amount spent of each limit after the last finished round.",
    "budget_limit": "The limits of the budget.",
}
_LABELS = {
    "comparisons": ("outcome", "reason"),
    "tokens": ("direction",),
    "load_seconds": ("model",),
    "campaign_state": ("state",),
    "campaign_outcome": ("outcome", "claim"),
    "best_estimate": ("candidate",),
    "best_lower": ("candidate",),
    "best_upper": ("candidate",),
    "best_held_out": ("candidate",),
    "budget_spent": ("budget",),
    "budget_limit": ("budget",),
}
"""Metric -> its labels, in addition to the campaign and its objective."""


class CampaignMetrics(Collector):
    """Prometheus collector that reads a database at every scrape.

    Args:
        storage: URL of the database.
    """

    def __init__(self, storage: str) -> None:
        self._storage = storage

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics; if the database cannot be read, only `winnow_database_up` with value 0."""
        families = _families()
        is_up = 1.0
        try:
            with reading(self._storage) as session:
                for campaign in campaign_records.readable_campaigns(session)[0]:
                    _add(families, session, campaign)
        except StorageError:
            is_up, families = 0.0, {}
        yield GaugeMetricFamily("winnow_database_up", "1 if the results database answered.", value=is_up)
        yield from families.values()


def _families() -> dict[str, Metric]:
    def labels(name: str) -> tuple[str, ...]:
        return ("campaign", "objective", *_LABELS.get(name, ()))

    counters = {
        name: CounterMetricFamily(f"winnow_{name}", said, labels=labels(name))
        for name, said in _COUNTERS.items()
    }
    gauges = {
        name: GaugeMetricFamily(f"winnow_{name}", said, labels=labels(name)) for name, said in _GAUGES.items()
    }
    return {**counters, **gauges}


def _add(families: JsonObject, session: Session, campaign: CampaignRecord) -> None:
    """Add one campaign's values to the metric families."""
    own = (campaign.name, campaign.objective)

    def add(name: str, value: float | None, *labels: str) -> None:
        if value is not None:
            families[name].add_metric((*own, *labels), value)

    status = campaign_status(Look(session, campaign))
    totals = status.totals
    for name in ("rounds", "generations", "engine_seconds", "candidates"):
        add(name, totals[name])
    add("grid_comparisons", totals["grid"])
    for direction in ("input", "output"):
        add("tokens", totals[f"{direction}_tokens"], direction)
    for reason, count in unscored_views.by_reason(session, campaign).items():
        add("comparisons", count, "unscored" if reason else "scored", reason)
    for model, row in loads_by_model(session, campaign.id).items():
        add("load_seconds", row["load_seconds"], model)
    for state in STATES:
        add("campaign_state", float(status.state == state), state)
    answer = status.answer
    if answer.outcome is not None:
        for outcome in OUTCOMES:
            add("campaign_outcome", float(answer.outcome == outcome), outcome, answer.claim.kind)
    if (best := answer.of_best) is not None:
        add("best_estimate", best.estimate, best.name)
        add("best_lower", best.lower, best.name)
        add("best_upper", best.upper, best.name)
        add("best_held_out", answer.held_out_mean, best.name)
    for each in status.budgets:
        add("budget_spent", each.spent, each.kind)
        add("budget_limit", each.limit, each.kind)


SILENCE = 30.0
"""Seconds after which a connection without data is closed."""


class _Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True

    def handle_error(
        self, request: socket.socket | tuple[bytes, socket.socket], client_address: object
    ) -> None:
        """Ignore an `OSError`, because a scraper may disconnect at any time; print other errors."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


class _ServerOfIPv6(_Server):
    address_family = socket.AF_INET6


class _Handler(WSGIRequestHandler):
    timeout = SILENCE

    def log_message(self, format: str, *args: object) -> None:
        """Log no requests, because scrapes every few seconds would hide all other lines."""

    def get_environ(self) -> JsonObject:
        """The WSGI variables, with all headers in `winnow.headers`, because WSGI merges repeated ones."""
        return {**super().get_environ(), "winnow.headers": self.headers}


def metrics_server(registry: "CollectorRegistry", host: str, port: int, gate: Gate) -> WSGIServer:
    """Create a server that is bound but does not serve yet; port 0 chooses a free port.

    Raises:
        OSError: If the address or port is not available.
    """
    from prometheus_client import make_wsgi_app

    kind = _ServerOfIPv6 if ":" in host else _Server
    return make_server(host, port, _behind(gate, make_wsgi_app(registry)), kind, _Handler)


def _behind(gate: Gate, app: Callable[..., Iterable[bytes]]) -> Callable[..., Iterable[bytes]]:
    def answer(environ: JsonObject, start_response: Callable[..., object]) -> Iterable[bytes]:
        headers = environ["winnow.headers"]
        hosts, origins = (headers.get_all(name, []) for name in ("Host", "Origin"))
        refusal = gate.refusal(hosts, origins, _tokens(environ))
        if refusal is None:
            found: Iterable[bytes] = app(environ, start_response)
            return found
        plain = [("Content-Type", "text/plain; charset=utf-8"), ("X-Content-Type-Options", "nosniff")]
        start_response("403 Forbidden", plain)
        return [f"{refusal}\n".encode()]

    return answer


def _tokens(environ: JsonObject) -> list[str]:
    try:
        query = parse_qsl(environ.get("QUERY_STRING", ""), max_num_fields=100)
    except ValueError:
        query = []
    sent = bearer(environ.get("HTTP_AUTHORIZATION", ""))
    return [value for name, value in query if name == "token"] + ([] if sent is None else [sent])
