"""metrics: what Prometheus asks of a results database, printed once or served."""

from typing import Annotated

import typer

from flows.commands.options import DEFAULT_STORAGE, Storage
from tasks.errors import WinnowError


def metrics(
    storage: Storage = DEFAULT_STORAGE,
    serve: Annotated[
        int | None,
        typer.Option(
            metavar="PORT",
            min=1,
            max=65535,
            help="Serve them at this port until Ctrl-C, instead of printing them once.",
        ),
    ] = None,
    host: Annotated[
        str, typer.Option(help="Address to serve at; anyone who reaches it can read the metrics.")
    ] = "127.0.0.1",
) -> None:
    """Metrics of all campaigns of a database, in the text format of Prometheus. It only reads.

    Campaigns count whoever runs them, a schedule or another machine. Each scrape reads the database anew.
    """
    from prometheus_client import CollectorRegistry, generate_latest

    from flows.metrics import CampaignMetrics
    from flows.reading import reading

    with reading(storage):
        pass  # a database that is not there is told at once
    registry = CollectorRegistry(auto_describe=False)
    registry.register(CampaignMetrics(storage))
    if serve is None:
        print(generate_latest(registry).decode(), end="")
        return
    _serve(registry, host, serve)


def _serve(registry: object, host: str, port: int) -> None:
    import sys

    from prometheus_client import start_http_server

    try:
        server, thread = start_http_server(port, host, registry)
    except OSError as error:
        raise WinnowError(
            f"cannot serve at {host}:{port}: {error.strerror}; name another --serve PORT"
        ) from None
    print(f"serving metrics at http://{host}:{port}/metrics; stop with Ctrl-C", file=sys.stderr)
    try:
        thread.join()
    except KeyboardInterrupt:
        server.shutdown()
