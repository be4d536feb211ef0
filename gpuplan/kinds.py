"""What is known of each kind of scenario without looking into its slice."""

#: Policies where nobody names any, as in the `compare` of each kind.
POLICIES: dict[str, tuple[str, ...]] = {
    "allocation": ("fifo", "aware"),
    "fairshare": ("easy", "fair-share"),
    "packing": ("round-robin", "best-fit"),
}

#: Where the seed of a generated workload stands, by dotted path.
SEED_PATHS: dict[str, str] = {"fairshare": "workload.generate.seed", "packing": "tasks.generate.seed"}
