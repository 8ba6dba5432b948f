"""What keeps each promise, by subject: where it stands in the code, and which test misses it. Holds no tests."""
