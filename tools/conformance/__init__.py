"""`hnefi arena check`: whether an engine keeps the protocol, step after step."""
