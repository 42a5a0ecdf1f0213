"""Tasks of Inspect: what Winnow takes of each, and what it refuses, is tested on these."""

from pathlib import Path

from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import ChatMessageAssistant, ChatMessageUser, GenerateConfig
from inspect_ai.scorer import (
    answer,
    choice,
    exact,
    f1,
    includes,
    match,
    model_graded_fact,
    model_graded_qa,
    pattern,
)
from inspect_ai.solver import (
    Generate,
    TaskState,
    chain,
    chain_of_thought,
    generate,
    multiple_choice,
    prompt_template,
    self_critique,
    solver,
    system_message,
    use_tools,
    user_message,
)

QUESTIONS = ["What is 7+4?", "What is 20+5?", "Say {braces}.", "ünïcode?"]
TARGETS: list[str | list[str]] = ["11", ["25", "twenty-five"], "{braces}", "ja"]
CITIES = ["Paris", "Berlin", "Rome"]


def samples(**more):
    return [
        Sample(input=question, target=target, metadata={"topic": f"t{number}", "k": [number]}, **more)
        for number, (question, target) in enumerate(zip(QUESTIONS, TARGETS, strict=True))
    ]


@task
def plain():
    return Task(dataset=samples(), scorer=match())


@task
def templates(greeting: str = "You answer on {topic}."):
    return Task(
        dataset=samples(),
        solver=chain(
            system_message(greeting),
            [prompt_template("{prompt} ({topic}, {missing}, {extra})", extra="x"), chain_of_thought()],
            user_message("Be brief, {topic}."),
            generate(max_tokens=9),
        ),
        scorer=[includes(ignore_case=False), match(location="any", numeric=True)],
        config=GenerateConfig(temperature=0.5, stop_seqs=["\n"], system_message="First.", max_retries=3),
    )


@task
def turns():
    said = [
        ChatMessageUser(content="Hi"),
        ChatMessageAssistant(content="Hello"),
        ChatMessageUser(content="2+2?"),
    ]
    dataset = [
        Sample(id="four", input=said, target="4"),
        Sample(id="five", input=[*said[:2], *said], target="5"),
    ]
    return Task(dataset=MemoryDataset(dataset), scorer=[pattern(r"(\d)"), exact()])


@task
def choices():
    return Task(
        dataset=[
            Sample(input=f"Which is no. {number}?", choices=CITIES, target="ABC"[number])
            for number in range(3)
        ],
        solver=multiple_choice(cot=True, max_tokens=50),
        scorer=[choice(), answer("letter")],
    )


@task
def several():
    return Task(
        dataset=[
            Sample(input="Capitals?", choices=[*CITIES, "Lyon"], target=["A", "B", "C"]),
            Sample(input="Not one?", choices=[*CITIES, "Lyon"], target="D"),
        ],
        solver=[system_message("Choose."), multiple_choice(multiple_correct=True)],
        scorer=choice(),
    )


@task
def graded():
    return Task(dataset=samples(), scorer=model_graded_qa(partial_credit=True))


@task
def graded_otherwise():
    return Task(
        dataset=samples(),
        solver=[prompt_template("Q: {prompt}"), generate()],
        scorer=model_graded_fact(
            template="{question}|{criterion}|{answer}|{topic}|{k[0]}|{instructions}",
            instructions="Say SCORE: and a number.",
            grade_pattern=r"SCORE: (\S+)",
            include_history=True,
        ),
    )


@task
def words():
    return Task(dataset=samples(), scorer=f1(stop_words=["is"]))


@solver
def shouting():
    async def solve(state: TaskState, generate: Generate) -> TaskState:
        return await generate(state)

    return solve


@task
def own_solver():
    return Task(dataset=samples(), solver=shouting(), scorer=match())


@task
def tools():
    return Task(dataset=samples(), solver=[use_tools(), generate()], scorer=match())


@task
def critique():
    return Task(dataset=samples(), solver=[generate(), self_critique()], scorer=match())


@task
def epochs():
    return Task(dataset=samples(), epochs=3, scorer=f1(answer_fn=str.strip))


@task
def files():
    return Task(dataset=samples(files={"a": "b"}), scorer=match(), time_limit=10)


@task
def fails():
    raise OSError(f"no\nway {Path('x')}")
