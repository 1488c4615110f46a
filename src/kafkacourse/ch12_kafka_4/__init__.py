"""Chapter 12: what's new in Kafka 4, live: groups, controllers, upgrades and the features they enable."""
