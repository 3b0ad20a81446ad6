"""Plan and cloud outputs to one bundle a node: pure functions and templates."""
