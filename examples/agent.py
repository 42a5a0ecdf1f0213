"""A small agent that adds two numbers digit by digit, in at most so many steps; see agents.yaml.

As a program it reads one JSON object and prints another; `answer` is the same as a function.
"""

import json
import sys


def answer(example: dict[str, str], params: dict[str, int]) -> dict[str, object]:
    """Add the numbers of an example; it needs a step for each digit, and stops when there is none left."""
    digits = [int(each) for each in example["input"].split("+")]
    total, carry, steps = 0, 0, 0
    while any(digits) or carry:
        if steps == params["steps"]:
            break
        column = sum(each % 10 for each in digits) + carry
        total += column % 10 * 10**steps
        carry, digits, steps = column // 10, [each // 10 for each in digits], steps + 1
    return {
        "output": str(total),
        "cost": 0.001 * steps,
        "usage": {"input_tokens": len(example["input"]), "output_tokens": len(str(total))},
        "metrics": {"steps": steps},
        "trace": [f"column {number + 1}" for number in range(steps)],
    }


if __name__ == "__main__":
    message = json.load(sys.stdin)
    print(json.dumps(answer(message["example"], message["params"])))
