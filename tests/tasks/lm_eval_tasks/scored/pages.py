"""Texts of documents; Winnow makes these in another process than the scores."""


def detokenized(doc):
    return doc["page"].replace(" ,", ",").replace(" .", ".")
