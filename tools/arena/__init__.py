"""The arena: engine processes play each other, and statistics say which is stronger and which side is easier."""
