"""Stand-ins for what one machine lacks; never imported by product code."""
