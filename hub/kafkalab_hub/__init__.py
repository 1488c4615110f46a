"""A JupyterHub for a class of the Kafka course. It runs in the hub's Python, where the course isn't installed.

`configuration.configure` sets up any JupyterHub, and `tljh_plugin` does so for The Littlest JupyterHub.
"""
