"""`make bench-route`: exactness, simulated experts on real prompts, and the speed of the route methods.

python -m tests.benchmarks.route --data FOLDER --out .winnow/bench
"""

import argparse
from pathlib import Path

from tests.benchmarks import (
    route_bandwidths,
    route_campaign,
    route_exactness,
    route_experts,
    route_pays,
    route_speed,
)
from tests.benchmarks.route_prompts import TYPES, embedded
from tests.benchmarks.tables import Row, told, write

TITLES = {
    "exactness": "Exactness: against a solve of the definition, alpha = 1",
    "experts": f"Experts on real prompts ({', '.join(TYPES)}): 5 arms, 2 000 rounds, default exploration",
    "settings": "The same world: kernels, exploration and numbers of features",
    "newcomer": "A sixth arm comes after 1 000 rounds, best on one type",
    "types": "Types come one by one: share of each type that its expert gets",
    "bandwidths": "Chosen bandwidths beside the fixed one: 5 arms, 2 000 rounds",
    "pays": "Whether routing pays: the interval of routing minus the best single arm",
    "speed": "Speed: 5 arms, one prompt a round",
    "policy": "Speed of the exported policy: 10 arms, d = 384",
    "campaign": "The demo's campaign on vLLM, killed and resumed, beside what every candidate scores",
}
PARTS = ("exactness", "experts", "bandwidths", "pays", "speed", "campaign")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="folder with the tasks")
    parser.add_argument("--out", type=Path, default=Path(".winnow/bench"))
    parser.add_argument("--seeds", type=int, default=10, help="independent streams of prompts")
    parser.add_argument("--only", choices=PARTS, action="append", help="may be repeated")
    options = parser.parse_args()
    parts = options.only or PARTS
    found: dict[str, list[Row]] = {}
    if "speed" in parts:
        found["speed"] = told(route_speed.measure())
        found["policy"] = told(route_speed.measure_policy())
    if "campaign" in parts:
        found["campaign"] = told(route_campaign.measure())
    if {"exactness", "experts", "bandwidths", "pays"} & set(parts):
        embeddings = embedded(options.data, options.out)
    if "exactness" in parts:
        found["exactness"] = told(route_exactness.measure(embeddings))
    if "experts" in parts:
        found["experts"] = told(route_experts.measure(embeddings, options.seeds, route_experts.METHODS))
        found["settings"] = told(route_experts.measure(embeddings, options.seeds, route_experts.SETTINGS))
        found["newcomer"] = told(route_experts.measure_newcomer(embeddings, options.seeds))
        found["types"] = told(route_experts.measure_new_types(embeddings, options.seeds))
    if "bandwidths" in parts:
        found["bandwidths"] = told(route_bandwidths.measure(embeddings, options.seeds))
    if "pays" in parts:
        found["pays"] = told(route_pays.measure(embeddings, options.data, options.out, min(options.seeds, 3)))
    write("route", TITLES, found, options.out)


if __name__ == "__main__":
    main()
