"""`hnefi tune`: fits the weights of the hand-written evaluator of tafl to games of the engine against itself."""
