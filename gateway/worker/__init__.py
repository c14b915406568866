"""Isolation: the loop of a subagent in a process of its own.

`frames` is the wire, `wire` what goes over it. The gateway's side: `runner`, `following` one run,
`process`. The worker's side: `linked`, and `gateway.app.worker`, which puts concrete parts together.
"""
