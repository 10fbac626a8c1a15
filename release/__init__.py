"""What is checked before a release is made: `make release`, or `python -m release`."""
