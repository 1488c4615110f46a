"""Checks of labs on mirroring: what their modules share lives as long as this package's tests run."""
