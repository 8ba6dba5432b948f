"""Stand-ins for the outside world, for tests, the demo and users' own tests. Holds this sentence only."""
