"""Sessions on somebody else's machine: Binder, or the hub of a class.

``python -m kafkalab.cli.hosted binder COMMAND…`` makes the session ready and becomes the server's command. The script
``binder/start`` does that on Binder, and a hub with ``hub`` in the place of ``binder``.
"""
