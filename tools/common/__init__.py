"""What several subcommands share beside their command lines."""
