"""metrics: print or serve a results database's metrics for Prometheus."""

from contextlib import suppress
from typing import TYPE_CHECKING, Annotated

import typer

from winnow.flows.cli.options import DEFAULT_STORAGE, AllowHost, ReadStorage, TokenOption
from winnow.flows.reports.http_access import Gate, in_url, new_token
from winnow.tasks.errors import WinnowError

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry


def metrics(
    storage: ReadStorage = DEFAULT_STORAGE,
    serve: Annotated[
        int | None,
        typer.Option(
            metavar="PORT",
            min=1,
            max=65535,
            help="Port on which to serve the metrics until Ctrl-C, instead of printing them once.",
        ),
    ] = None,
    host: Annotated[
        str,
        typer.Option(help="Address to listen on, with --serve."),
    ] = "127.0.0.1",
    allow_host: AllowHost = None,
    token: TokenOption = True,
) -> None:
    """Print or serve the metrics of a database's campaigns, in the text format of Prometheus.

    All campaigns are included, also those that a schedule or another machine runs. The database is only read,
    again at each scrape. Other users of this machine can reach the port. So each scrape must send the header
    `Authorization: Bearer TOKEN` (in Prometheus's configuration, `authorization: {credentials: TOKEN}`),
    unless you give --no-token.
    """
    from prometheus_client import CollectorRegistry, generate_latest

    from winnow.flows.reports.default_database import reading
    from winnow.flows.reports.prometheus import CampaignMetrics

    with reading(storage):
        pass  # raises now if the database does not exist
    registry = CollectorRegistry(auto_describe=False)
    registry.register(CampaignMetrics(storage))
    if serve is None:
        print(generate_latest(registry).decode(), end="")
        return
    secret = new_token() if token else None
    gate = Gate.at(host, allowed=allow_host or (), token=secret)
    _serve(registry, host, serve, gate)


def _serve(registry: "CollectorRegistry", host: str, port: int, gate: Gate) -> None:
    import sys

    from winnow.flows.reports.prometheus import metrics_server

    try:
        server = metrics_server(registry, host, port, gate)
    except OSError as error:
        raise WinnowError(
            f"cannot listen on {host}:{port}: {error.strerror}; choose another --serve PORT"
        ) from None
    asked = f"; the token is {gate.token}" if gate.token else ""
    print(
        f"serving metrics at http://{in_url(host)}:{port}/metrics{asked}; stop with Ctrl-C", file=sys.stderr
    )
    with server, suppress(KeyboardInterrupt):
        server.serve_forever()
