"""Programs, endpoints and functions as candidates: each file in this folder is a provider of this name.

A provider's file has two classes. `Settings` are the keys of an entry under `models`, beside those that all
agents have, what identifies the agent, and what has to be allowed before it runs. `Caller` makes one attempt
to answer one example. Concurrency, time-outs, retries, limits and what is stored are the kit's; see
`tasks.engines.agents.kit.settings` and `tasks.engines.agents.kit.calls`.
"""
