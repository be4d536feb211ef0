"""Real traces as scenarios, each with an account of every row: read, used, left out and why."""
