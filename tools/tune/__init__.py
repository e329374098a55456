"""`hnefi tune`: the weights of the hand-written evaluator of tafl, fitted to games of the engine with itself."""
