"""Chapter 08: clusters that mirror each other."""
