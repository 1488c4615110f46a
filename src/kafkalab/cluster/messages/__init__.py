"""Kafka messages that kafka-python's protocol classes lack, described as Kafka describes its own.

The fields are those of https://kafka.apache.org/protocol#The_Messages_ConsumerGroupDescribe, and so for each message.
"""
