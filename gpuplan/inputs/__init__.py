"""Strict reading of what people write: YAML, units and the mistakes found in them."""
