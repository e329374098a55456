"""The engine as a service behind an MQTT broker, and tournaments for viewers."""
