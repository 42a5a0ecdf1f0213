"""The functions and classes of the package `winnow`, for notebooks and other programs."""
