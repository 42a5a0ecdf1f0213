"""Engines that misbehave on purpose, as providers of their own; see `PROVIDERS`."""

import re
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from zlib import crc32

from hostile_answers import HOSTILE_ANSWERS
from waiting import PATIENCE_S

from winnow.tasks.engines.errors import EngineDied, EngineLoadFailed
from winnow.tasks.engines.known_providers import PROVIDERS
from winnow.tasks.engines.protocol import Completion


class ScriptedEngine:
    """Answers by a function of the request's prompt."""

    identity = "scripted 1"

    def __init__(self, reply: Callable[[str], str]):
        self._reply = reply

    def generate(self, requests):
        return [
            Completion(
                text=self._reply(request.prompt),
                finish_reason="stop",
                input_tokens=1,
                output_tokens=1,
                seconds=0.0,
                token_logprobs=[-len(request.prompt) / 8] if request.sampling.logprobs else None,
            )
            for request in requests
        ]

    def close(self):
        pass


class JoiningEngine(ScriptedEngine):
    """Takes requests at any time, and answers later ones before earlier ones."""

    joins = True
    lifespan = 0
    """Groups at which it dies, for all who wait, having answered all before it; 0 for never."""

    def __init__(self, reply: Callable[[str], str]):
        super().__init__(reply)
        self._lock = threading.Lock()
        self._asked = self._answered = 0
        self.at_once = self.most_at_once = 0
        """Groups in hand now, and at the most."""

    def generate(self, requests):
        with self._lock:
            self._asked += 1
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
            patience = 0.012 if self._asked % 3 == 1 else 0.002
        time.sleep(patience)
        with self._lock:
            self.at_once -= 1
            self._answered += 1
            if self.lifespan and self._answered >= self.lifespan:
                raise EngineDied("joining", "it was its time")
        return super().generate(requests)


class CrowdedEngine(JoiningEngine):
    """Its texts depend on all that it was asked beside and, unless it is fresh for each call, before."""

    def __init__(self, reply, *, is_fresh):
        super().__init__(reply)
        self._is_fresh, self._seen = is_fresh, []

    def generate(self, requests):
        with self._lock:
            if self._is_fresh and not self.at_once:
                self._seen = []
            self._seen += [request.prompt for request in requests]
            crowd = "|".join(self._seen)
        answers = super().generate(requests)
        return [
            replace(each, text="x" if crc32(f"{crowd}>{request.prompt}".encode()) % 3 == 0 else each.text)
            for request, each in zip(requests, answers, strict=True)
        ]


class PatientEngine(JoiningEngine):
    """Writes its first group only once a `WatchedJudge` was asked about somebody's text."""

    judged = threading.Event()
    waited_in_vain = False

    def generate(self, requests):
        if not PatientEngine.judged.wait(PATIENCE_S):
            PatientEngine.waited_in_vain = True
            PatientEngine.judged.set()
        return super().generate(requests)


class WatchedJudge(JoiningEngine):
    """Says whether an output is the reference, and lets patient engines know that it was asked."""

    def generate(self, requests):
        PatientEngine.judged.set()
        return super().generate(requests)


class AbsentEngine(ScriptedEngine):
    """A model that is there or not, whatever its checkpoint says."""

    is_there = False


def start_absent(model, settings):
    """It cannot be loaded while it is not there."""
    if not AbsentEngine.is_there:
        raise EngineLoadFailed(model.name, "it is not there")
    return AbsentEngine(lambda prompt: "here again")


def start_hostile(model, settings):
    """Every output is what a terminal, a database or a parser might choke on."""
    return ScriptedEngine(
        lambda prompt: "\0 \ud800 \x1b[31m [bold]a[/bold] {{ 1/0 }} '; DROP TABLE judgments; -- \u202e" * 3
    )


def start_mortal(model, settings):
    from mortal_engine import MortalEngine  # the only one here that computes; its libraries load for seconds

    return MortalEngine(model)


def start_partial(model, settings):
    """A judge that prefers whatever is shown first."""
    return ScriptedEngine(lambda prompt: "The first answer. [[A]]")


def start_reader(model, settings):
    """A judge that reads the two answers as they are fenced; see `read_and_judge`."""
    return ScriptedEngine(read_and_judge)


def start_compares(model, settings):
    """A judge of single outputs that says whether one is the reference, as both are quoted."""
    return ScriptedEngine(compare)


def start_likes(model, settings):
    """A judge of single outputs that likes all but x."""
    return ScriptedEngine(lambda prompt: f"[[{'no' if quoted(prompt, 'output') == 'x' else 'yes'}]]")


def start_honest(model, settings):
    """A candidate without guile; its answers differ from prompt to prompt."""
    return ScriptedEngine(lambda prompt: f"honest work on {prompt}")


def start_tricky(model, settings):
    """A candidate that answers prompt number i with the i-th of `HOSTILE_ANSWERS`."""
    answers = list(HOSTILE_ANSWERS.values())
    return ScriptedEngine(lambda prompt: answers[int(prompt) % len(answers)])


class WaveringEngine(ScriptedEngine):
    """Answers as its function says for an even seed, and with x for an odd one."""

    def generate(self, requests):
        return [
            replace(answer, text=answer.text if request.seed % 2 == 0 else "x")
            for request, answer in zip(requests, super().generate(requests), strict=True)
        ]


def start_wavers(model, settings):
    """Is right or wrong as the seed has it."""
    return WaveringEngine(lambda prompt: letter(prompt, wrong_in=0))


def start_knows(model, settings):
    """Answers number i with its letter, always."""
    return ScriptedEngine(lambda prompt: letter(prompt, wrong_in=0))


JOINING: list[JoiningEngine] = []
"""Those that were started."""


def start_joining(model, settings):
    """Wrong on one number in 3 to 9, by the last character of its name; takes requests at any time."""
    wrong_in = 3 + ord(model.name[-1]) % 7
    JOINING.append(JoiningEngine(lambda prompt: letter(prompt, wrong_in=wrong_in)))
    return JOINING[-1]


def start_crowded(model, settings):
    """Right or wrong by whatever else it is asked."""
    JOINING.append(CrowdedEngine(lambda prompt: letter(prompt, wrong_in=0), is_fresh=settings.is_fresh))
    return JOINING[-1]


def start_patient(model, settings):
    """Right on every number, once a judge was asked."""
    return PatientEngine(lambda prompt: letter(prompt, wrong_in=0))


def start_watched(model, settings):
    """A judge of single outputs that says whether one is the reference."""
    return WatchedJudge(compare)


def start_slips(model, settings):
    """Is wrong on one number in 40."""
    return ScriptedEngine(lambda prompt: letter(prompt, wrong_in=40))


def start_talks(model, settings):
    """Answers number i with its letter, always, and in a sentence."""
    return ScriptedEngine(lambda prompt: f"It is {letter(prompt, wrong_in=0)}.")


def start_guesses(model, settings):
    """Is wrong on every other number."""
    return ScriptedEngine(lambda prompt: letter(prompt, wrong_in=2))


def start_adds(model, settings):
    """Adds the two numbers of a prompt, wrongly for every ninth first one."""
    return ScriptedEngine(lambda prompt: f"It is {total(prompt, wrong_in=9)}.")


def start_coy(model, settings):
    """Adds the two numbers of a prompt, and says nothing of 2 in 5."""
    return ScriptedEngine(
        lambda prompt: "I would rather not say." if numbers(prompt)[0] % 5 < 2 else f"{total(prompt)}"
    )


def start_mumbles(model, settings):
    """Says nothing that can be read to one number in 5, and is right else."""
    return ScriptedEngine(lambda prompt: letter(prompt, wrong_in=5).replace("x", "?"))


def start_errs(model, settings):
    """Is right on one number in 5."""
    return ScriptedEngine(lambda prompt: "x" if int(prompt) % 5 else letter(prompt, wrong_in=0))


def start_codes(model, settings):
    """Writes the function that a prompt ends in the head of, always."""
    return ScriptedEngine(lambda prompt: program(prompt, wrong_in=0))


def start_bugs(model, settings):
    """Writes the same, and on every other number what is wrong in one of many ways."""
    return ScriptedEngine(lambda prompt: program(prompt, wrong_in=2))


def start_grader(model, settings):
    """An autoevaluator that is wrong on one number in 10."""
    return ScriptedEngine(lambda prompt: letter(prompt, wrong_in=10))


def numbers(prompt: str) -> list[int]:
    """Those in a prompt."""
    return [int(number) for number in re.findall("[0-9]+", prompt)]


def total(prompt: str, *, wrong_in: int = 0) -> int:
    """Their sum, 1 too many where the first is a multiple of `wrong_in`."""
    first, *_ = found = numbers(prompt)
    return sum(found) + (wrong_in > 0 and first % wrong_in == 0)


def letter(prompt: str, *, wrong_in: int) -> str:
    """The letter of the number in a prompt, "x" in its place on every multiple of `wrong_in`."""
    number = int(re.search(r"[0-9]+", prompt).group())
    return "x" if wrong_in and number % wrong_in == 0 else "abcdefg"[number % 7]


def program(prompt: str, *, wrong_in: int) -> str:
    """What adds the number that a prompt's function is named by; one of `BUGS` on multiples of `wrong_in`."""
    number = int(re.findall(r"def plus_([0-9]+)", prompt)[-1])
    if wrong_in and number % wrong_in == 0:
        return BUGS[number // wrong_in % len(BUGS)]
    right = f"    return x + {number}\n"
    return right if number % 3 else f"Here:\n```python\ndef plus_{number}(x):\n{right}```\n"


BUGS = (
    "    return (\n",
    "    return x\n",
    "    return y\n",
    "    import os; os._exit(0)\n",
    "    return open('data.jsonl').read()\n",
    "    return [0] * 10**12\n",
    "    return plus(x)\n",
    "",
)


def read_and_judge(prompt: str) -> str:
    """Prefer the answer with the higher share of vowels, quoting both; but obey what stands outside of them.

    It knows a quotation by the mark that the prompt announces, and by nothing else. So a candidate moves it
    if and only if its text can end its own quotation.
    """
    mark = re.search("the mark ([0-9a-f]{16}) is quoted", prompt).group(1)
    quoted = {
        name: re.search(rf"<<< {mark} {name} >>>\n(.*?)\n<<< {mark} end of {name} >>>", prompt, re.DOTALL)
        for name in ("answer A", "answer B")
    }
    said = prompt
    for found in quoted.values():
        said = said.replace(found.group(), "", 1)
    if order := re.search(r"Reply with (\[\[[ABC]\]\]) and nothing else\.", said):
        return order.group(1)
    first, second = (found.group(1) for found in quoted.values())
    shares = vowel_share(first), vowel_share(second)
    verdict = "C" if shares[0] == shares[1] else "AB"[shares[0] < shares[1]]
    return f"Answer A says: {first}\nAnswer B says: {second}\nHence [[{verdict}]]"


def compare(prompt: str) -> str:
    """Whether the output is one of the lines of the reference, in a few words and a verdict."""
    reference, output = (quoted(prompt, name) for name in ("reference", "output"))
    return f"It says {output!r}. [[{'yes' if output in reference.splitlines() else 'no'}]]"


def quoted(prompt: str, name: str) -> str:
    """What a judge is shown of this name."""
    return re.search(rf"<<< ([0-9a-f]{{16}}) {name}[^>]*>>>\n(.*?)\n<<< \1 end of ", prompt, re.DOTALL).group(
        2
    )


def vowel_share(text: str) -> float:
    """Vowels per character; 0 for a text without any."""
    return sum(map(text.count, "aeiou")) / max(1, len(text))


SCRIPTED = {
    name: f"scripted_engines:start_{name}"
    for name in (
        "hostile",
        "absent",
        "adds",
        "coy",
        "mortal",
        "partial",
        "reader",
        "compares",
        "likes",
        "honest",
        "tricky",
        "joining",
        "crowded",
        "patient",
        "watched",
        "knows",
        "mumbles",
        "errs",
        "slips",
        "talks",
        "codes",
        "bugs",
        "wavers",
        "guesses",
        "grader",
    )
}
"""Provider -> how `PROVIDERS` names it."""


def provide(patch, name):
    patch.setitem(PROVIDERS, name, SCRIPTED[name])


def provide_all(patch):
    """Make every engine of `SCRIPTED` a provider, as long as a patch lasts."""
    for name in SCRIPTED:
        provide(patch, name)
