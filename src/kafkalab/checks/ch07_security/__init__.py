"""Chapter 07: certificates, users with passwords, ACL rules, a change of mechanism, Kerberos."""

NOTEBOOKS = ("ssl", "users", "acls", "rolling", "kerberos")
"""Modules of this package, in the order in which the chapter names their notebooks."""
