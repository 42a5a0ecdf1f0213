"""A real engine that dies on purpose, as a provider of its own; see `scripted_engines.start_mortal`."""

from winnow.tasks.engines.errors import EngineDied
from winnow.tasks.engines.transformers.engine import TransformersEngine


class MortalEngine(TransformersEngine):
    """A real engine that dies whenever its lifespan is over, counted in batches over all its lives."""

    batches = 0
    lifespan = 3

    def generate(self, requests):
        MortalEngine.batches += 1
        if MortalEngine.batches % MortalEngine.lifespan == 0:
            raise EngineDied("mortal", "it was its time")
        return super().generate(requests)
