"""What `utils` imports from the tasks' folder."""

import re


def last_number(text):
    found = re.findall(r"-?\d+", text)
    return found[-1] if found else None
