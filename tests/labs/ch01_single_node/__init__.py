"""Checks of labs on one broker: what their modules share lives as long as this package's tests run."""
