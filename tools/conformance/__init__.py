"""`hnefi arena check`: whether an engine follows the protocol, step by step."""
