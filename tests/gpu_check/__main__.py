"""`make gpu-check`: one command that tries Winnow on the GPUs of a machine and writes a table.

    python -m tests.gpu_check --out DIR [--provider vllm|transformers] [--only ROW ...]

Each row is tried by a process of its own, with a limit: what fails is a row that says so. The table is
written after every row. Begun again, it goes on with the rows that failed or are missing, unless the machine
or the versions are others than before; rows named by --only are measured anew. The exit code is 1 where a row
failed, and 2 where nothing could be tried.
"""

import argparse
import signal
import sys
from pathlib import Path

from tests.gpu_check.machine import described, missing, refused
from tests.gpu_check.site import PROVIDERS, Site, trained
from tests.gpu_check.steps import STEPS, tried
from tests.gpu_check.table import Table

UNUSABLE = 2
ENDED = 128 + signal.SIGTERM


def main(arguments: list[str] | None = None) -> int:
    options = _options(arguments)
    if said := missing(options.provider):
        print(f"gpu-check: {said}", file=sys.stderr)
        return UNUSABLE
    if options.model and not (options.model / "config.json").is_file():
        print(f"gpu-check: there is no checkpoint in {options.model}; give a model's folder", file=sys.stderr)
        return UNUSABLE
    machine = described(options.work)
    if said := refused(machine, options.provider, options.device):
        print(f"gpu-check: {said}", file=sys.stderr)
        return UNUSABLE
    site = Site(
        folder=options.work.absolute(),
        provider=options.provider,
        device=options.device,
        n_devices=options.devices or max(1, machine.n_gpus if options.device == "cuda" else 1),
        demo=options.demo.absolute(),
        model=options.model.absolute() if options.model else None,
        texts=options.texts,
        budget=options.budget,
    )
    table = Table(options.out, machine.lines(site))
    wanted = [name for name, step in STEPS.items() if site.provider in step.providers]
    named = options.only or [name for name in wanted if not table.is_done(site.provider, name)]
    names = [each for each in wanted if each in named]
    if site.model is None and names:
        trained(site.demo, _tell)
    for name in names:
        table.replace(site.provider, name, tried(site, name, limit=options.limit, tell=_tell))
    print(f"written to {table.path}")
    return 1 if table.has_failures else 0


def _tell(line: str) -> None:
    print(line, flush=True)


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.gpu_check",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="rows:\n" + "\n".join(f"  {name:<16}{step.title}" for name, step in STEPS.items()),
    )
    option = parser.add_argument
    option("--out", type=Path, default=Path(".winnow/gpu-check"), help="gets gpu-check.md, .csv and .json")
    option("--work", type=Path, default=Path(".winnow/gpu-check/work"), help="gets logs, caches, databases")
    option("--provider", choices=PROVIDERS, default="vllm", help="what runs the models")
    option("--only", choices=list(STEPS), nargs="+", metavar="ROW", help="these rows alone, measured anew")
    option("--device", choices=["cuda", "cpu"], default="cuda", help="cpu tries the same without GPUs")
    option("--devices", type=int, help="how many devices to use; all by default")
    option("--demo", type=Path, default=Path(".winnow/demo"), help="the demo's models, trained if missing")
    option("--model", type=Path, help="a checkpoint to measure in the place of the demo's models")
    option("--texts", type=int, default=64, help="requests where answers are compared")
    option("--budget", type=int, help="comparisons of a campaign, for slow machines; the demo's by default")
    option("--limit", type=float, default=300.0, help="seconds for a row")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(ENDED))  # a row, another session, ends too
    sys.exit(main())
