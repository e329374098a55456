"""A client of the MQTT services: the connection, the names of the topics, and sessions at engine hosts.

`hnefi mqtt` is a service and several clients of it; `hnefi web` takes engines from such services.
"""
