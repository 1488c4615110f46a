"""Chapter 07: certificates, users with passwords, ACL rules, a change of mechanism, Kerberos."""
