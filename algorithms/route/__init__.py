"""Choice of the arm for each prompt: one regression of scores on prompts per arm, and choices that explore.

A prompt is its context, an embedding of length 1 that all arms share; a score is in [-1, 1].
"""
