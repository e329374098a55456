"""`hnefi balance`: which side a rule set favours, found by equal players on both sides of rising strength."""
