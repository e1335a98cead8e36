"""What the drivers share: processes, figures, tables. Standard library only."""
