"""Models behind APIs other than OpenAI's, reached through litellm in a separate process."""
