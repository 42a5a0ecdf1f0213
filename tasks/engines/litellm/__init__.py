"""Models behind APIs other than OpenAI's, called through litellm in a separate process."""
