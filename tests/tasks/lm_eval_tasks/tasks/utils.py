"""Functions of the task `functions`."""


def process_docs(docs):
    return docs.filter(lambda doc: doc["lvl"] != 1).map(lambda doc: {"q": doc["q"] + "!"})


def text(doc):
    return "By a function: " + doc["q"]
