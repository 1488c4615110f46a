"""Chapter 02: three brokers, groups, replication, failover, the quorum, racks and the value of an acknowledgement."""
