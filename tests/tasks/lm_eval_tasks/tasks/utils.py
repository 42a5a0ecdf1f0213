"""Functions of tasks that have some."""

import random

import datasets
import numpy as np
import torch


def process_docs(docs):
    return docs.filter(lambda doc: doc["lvl"] != 1).map(lambda doc: {"q": doc["q"] + "!"})


def text(doc):
    return "By a function: " + doc["q"]


def shuffled(docs):
    """As GPQA's: the choices of each document in an order that is drawn."""

    def with_choices(doc):
        choices = list(doc["opts"])
        random.shuffle(choices)
        return {"opts": choices, "gold": choices.index(doc["opts"][doc["gold"]])}

    return docs.map(with_choices)


def drawn(docs):
    """Documents in an order that is drawn, which the library `datasets` cannot take from its cache."""
    rows = list(docs)
    order = np.random.permutation(len(rows))  # noqa: NPY002 -- as functions of tasks do
    marks = torch.randint(1000, (len(rows),)).tolist()
    return datasets.Dataset.from_list(
        [{**rows[at], "q": f"{rows[at]['q']} {mark}"} for at, mark in zip(order, marks, strict=True)]
    )
