"""Checks of labs on Connect: what their modules share lives as long as this package's tests run."""
