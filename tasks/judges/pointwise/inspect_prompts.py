"""The prompts of Inspect 0.3.285 (MIT licence) for a grading model, word for word."""

QA = """
You are assessing a submitted answer on a given task based on a criterion. Here is the data:

[BEGIN DATA]
***
[Task]: {question}
***
[Submission]: {answer}
***
[Criterion]: {criterion}
***
[END DATA]

Does the submission meet the criterion?

{instructions}
"""

FACT = """
You are comparing a submitted answer to an expert answer on a given question. Here is the data:

[BEGIN DATA]
************
[Question]: {question}
************
[Expert]: {criterion}
************
[Submission]: {answer}
************
[END DATA]

Compare the factual content of the submitted answer with the expert answer. Ignore any differences in \
style, grammar, or punctuation.

Does the submission contain the content in the expert answer?

{instructions}
"""

TEMPLATES = {"model_graded_qa": QA, "model_graded_fact": FACT}


def instructions_for(partial_credit: bool) -> str:
    """Instructions on how to reply, if a task gives none."""
    letter, partly = ("P", '"P" for partially correct answers,') if partial_credit else ("", "")
    return f"""
After assessing the submitted answer, reply with 'GRADE: $LETTER' (without quotes) where LETTER is one of \
C{letter}I.  Please choose ONE option for the grade: either "C" for correct answers, {partly}or "I" for \
incorrect answers.

For example, after reviewing a correct answer you might write 'GRADE: C' or after reviewing an incorrect \
answer you might write 'GRADE: I'.

First, write out in a step by step manner your reasoning about the criterion to be sure that your \
conclusion is correct. Avoid simply stating the correct answers at the outset. Then, end with your answer \
formatted as 'GRADE: $LETTER' (without quotes) where LETTER is one of C{letter}I.
"""
