"""What a person or a program reads of a command: made from findings and plans alone."""
