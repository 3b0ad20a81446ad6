"""What builds and finds the tool chain: the engine, its language host, the SDK."""
