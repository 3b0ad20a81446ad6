"""A stand-in for Pulumi's Python language host, where the official one is not installed."""
