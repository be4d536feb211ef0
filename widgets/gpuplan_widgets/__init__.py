"""Explorers for notebooks: controls that choose, charts that show, nothing that computes."""
