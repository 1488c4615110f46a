"""Checks of labs on security: what their modules share lives as long as this package's tests run."""
