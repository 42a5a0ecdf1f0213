"""Models behind APIs that are not OpenAI's, asked through litellm in a process of its own."""
