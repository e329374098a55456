"""The programs around the engine; `hnefi` itself is `cli`, every other module is one subcommand of it."""
