"""Engine for servers that support OpenAI's HTTP API."""
