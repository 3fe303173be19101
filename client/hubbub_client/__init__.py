"""The device agent: perturb, keep the ledger, send."""
