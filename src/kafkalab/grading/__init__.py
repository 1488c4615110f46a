"""Grade submissions of labs: run each one closed off from the rest of the machine, and let the course's checks decide."""
