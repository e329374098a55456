"""Our engine as an account on the public server hnefatafl.org, `hnefi hnefatafl-org`."""
