"""Experiments, in four rooms: `judging`, `running`, `files`, `definitions`; each may import those named after it."""
