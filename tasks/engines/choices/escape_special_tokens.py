"""Special tokens spelled out in a text that is sent to a chat.

Many servers read them as what they are: a text from elsewhere (a data set, another model's answer) could
close the user's turn and speak as somebody else. An engine of our own asks its tokenizer which they are, see
`PromptEncoder`; of a server's tokenizer nothing is known, so those of the common families are broken up. The
turns of a model with tokens of another form are guarded by its server alone.
"""

import re

SPELLED = re.compile(
    r"<[|｜][^<>\s|｜]{1,64}[|｜]>"  # <|im_end|>, <|eot_id|>, and with wide bars
    r"|</?s>|<[be]os>|<(?:start|end)_of_turn>"
    r"|\[/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_RESULTS|TOOL_CALLS)\]|<</?SYS>>"
)


def without_turns(prompt: str) -> str:
    """The prompt with a space after the first character of each spelled special token."""
    return SPELLED.sub(lambda found: f"{found[0][0]} {found[0][1:]}", prompt)
