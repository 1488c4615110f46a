"""Kafka messages that kafka-python's protocol classes lack, described in Kafka's own format.

The fields come from https://kafka.apache.org/protocol#The_Messages_ConsumerGroupDescribe, and the same for each
message.
"""
