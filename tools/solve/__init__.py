"""`hnefi solve`: exact values of small boards and of single positions."""
