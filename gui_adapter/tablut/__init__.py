"""The Bologna Tablut competition: our engine on its server, its bots as our engines, and a server for both."""
