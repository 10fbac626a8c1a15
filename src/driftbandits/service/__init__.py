"""Experiments over HTTP: `driftbandits serve`. `docs/service.md` is the guide. Needs the extra `serve`."""
