"""`hnefi evaluator`: files of evaluators shown, checked, compared and played against each other."""
