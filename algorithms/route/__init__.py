"""Choose an arm for each prompt.

There is one regression of scores on prompts per arm, with exploration. A prompt is represented by its
context, an embedding of length 1 that all arms share; a score is in [-1, 1].
"""
