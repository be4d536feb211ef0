"""Reports: one self-contained page of a scenario under some policies, and a check that recomputes its figures."""
