"""`make bench`: what Winnow costs beside the work itself, as a table with the name of the machine.

python -m tests.benchmarks --demo .winnow/demo --out .winnow/bench
"""

import argparse
import json
import platform
from pathlib import Path

from tests.benchmarks import campaign_over_generate, persistence, prefect_overhead, start_up
from tests.benchmarks.measurements import Measurement, cpu_name
from winnow.flows.prefect_support.environment import settle_environment


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--demo", type=Path, default=Path(".winnow/demo"), help="folder `make demo` filled")
    parser.add_argument("--out", type=Path, default=Path(".winnow/bench"))
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    settle_environment(options.out / "prefect")
    measurements: list[Measurement] = []
    for measure in (
        start_up.measure,
        persistence.measure,
        prefect_overhead.measure,
        campaign_over_generate.measure,
    ):
        for measurement in measure(options.demo):
            print(measurement.line(), flush=True)
            measurements.append(measurement)
    write(measurements, options.out)


def write(measurements: list[Measurement], folder: Path) -> None:
    machine = f"{cpu_name()}, Python {platform.python_version()}"
    lines = [f"Measured on {machine}.", "", "| what | measured | target |", "|---|---|---|"]
    lines += [f"| {each.what} | {each.value} | {each.target} |" for each in measurements]
    (folder / "overhead.md").write_text("\n".join(lines) + "\n")
    rows = [each._asdict() for each in measurements]
    (folder / "overhead.json").write_text(json.dumps({"machine": machine, "measurements": rows}, indent=2))
    print(f"written to {folder / 'overhead.md'}")


if __name__ == "__main__":
    main()
