"""Proven positions as exercises with ratings, for `hnefi puzzle` and the pages of `hnefi web`."""
