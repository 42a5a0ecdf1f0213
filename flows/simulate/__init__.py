"""Output of `winnow simulate` and `winnow plan`: lines, files and pictures."""
