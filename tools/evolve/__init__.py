"""Evaluators that learn by playing: algorithms that know no game, the games that judge them, the folder of a run."""
