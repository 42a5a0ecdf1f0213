"""Words, numbers and patterns in displayed or parsed text."""
