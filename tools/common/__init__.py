"""Code that several subcommands share."""
