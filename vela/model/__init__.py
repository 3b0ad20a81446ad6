"""What people write: strict types of the environment and hardware files, with positions."""
