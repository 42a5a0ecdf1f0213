"""Engines without a model, for tests of the pool: what they answer and when they fail is in a script."""

from winnow.tasks.engines.protocol import Completion, ModelRef, Request, Sampling


class ScriptedEngine:
    """Answers with its model's name and the prompt; an error in the script is raised instead."""

    def __init__(self, model, script, diary):
        self.identity = f"scripted {model.name}"
        self._name, self._script, self._diary = model.name, script, diary

    def generate(self, requests):
        step = self._script.pop(0) if self._script else None
        if callable(step):
            step()
        if isinstance(step, Exception):
            raise step
        return [
            Completion(
                text=f"{self._name}:{r.prompt}",
                finish_reason="stop",
                input_tokens=1,
                output_tokens=1,
                seconds=0.0,
            )
            for r in requests
        ]

    def close(self):
        self._diary.append(f"close {self._name}")


class SleepyEngine(ScriptedEngine):
    """One that can sleep, unless its device cannot; an error in place of falling asleep is raised."""

    can_sleep = True
    trouble = None

    def sleep(self):
        if self.trouble is not None:
            raise self.trouble
        self._diary.append(f"sleep {self._name}")

    def wake(self):
        self._diary.append(f"wake {self._name}")


class ScriptedFactory:
    """Starts scripted engines; all engines of a model go through one script, and a start error is raised."""

    def __init__(self, scripts=None, start_errors=None):
        self.diary, self.scripts, self.start_errors = [], scripts or {}, start_errors or {}
        self.settings = {}

    engine = ScriptedEngine

    def __call__(self, model, settings):
        self.diary.append(f"start {model.name}")
        self.settings[model.name] = settings
        if error := self.start_errors.get(model.name):
            raise error
        return self.engine(model, self.scripts.get(model.name, []), self.diary)


def model(name, **fields):
    return ModelRef(**{"name": name, "provider": "scripted", "model": f"models/{name}", **fields})


def ask(*prompts):
    return [Request(prompt=prompt, sampling=Sampling(), seed=0) for prompt in prompts]


def texts(answers):
    return [answer.text for answer in answers]


def reasons(answers):
    return [answer.reason for answer in answers]
