"""Fail a pipeline if a prompt is worse than the one in use by more than 5 points; see server.yaml."""

import sys

import winnow

spec = winnow.Spec.from_file("server.yaml", {"name": "gate", "stopping.epsilon": 0.05})
found = winnow.gate(spec, baseline="served/direct", junit="gate.xml", markdown="gate.md")
print(found)
sys.exit(found.exit_code)
