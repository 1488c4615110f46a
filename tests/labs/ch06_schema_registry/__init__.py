"""Checks of labs on schemas: what their modules share lives as long as this package's tests run."""
