"""`hnefi train`: an efficiently updatable network for a variant, taught by games of the engine with itself."""
