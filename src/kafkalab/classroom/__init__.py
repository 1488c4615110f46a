"""A class that learns together: seats, polls, calls for help, and the board that shows who waits.

An instructor's ``kafkalab teach`` runs the class's own Kafka cluster. A learner's ``kafkalab join`` takes a seat. From then
on this learner's notebooks send `events` to the seat's topic, and follow what the instructor releases in the class's
public topic. Without a class nothing leaves the learner's machine.
"""
