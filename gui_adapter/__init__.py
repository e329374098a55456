"""Doors for people and foreign programs: each adapter translates one convention into lines of the text protocol.

An adapter talks to an engine process through `hnefi.protocol.client` and holds no rules, no search and no opinions.
Adapters never import each other, and importing this package loads none of them.
"""
