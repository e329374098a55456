"""What the program calls itself, where the packaging's metadata would take too long to read."""

NAME = "hnefi"
VERSION = "0.2.0"
AUTHORS = "the hnefi developers"
LICENSE = "MIT"
