"""Providers of agents; each module implements the provider of its name.

An agent is a program, an endpoint or a function as a candidate. A provider's module has two classes.
`Settings` defines the provider's own keys of an entry under `models`, the agent's identity, and the acts that
a user must permit before it runs. `Caller` makes one attempt to answer one example. The package `kit` handles
concurrency, time-outs, retries, limits and storage; see `tasks.engines.agents.kit.settings` and
`tasks.engines.agents.kit.calls`.
"""
