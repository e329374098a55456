"""Evaluators that learn by playing: algorithms that know no game, the games they are judged by, the folder of a run."""
