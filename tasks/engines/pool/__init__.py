"""Pool of engines of several models, and the decision which of them are loaded."""
