"""Files: what an experiment reads and leaves on disk (a run's configuration, finished cells); plays nothing."""
