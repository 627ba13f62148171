"""The learner: forward and backward passes, heads, optimiser, weights to publish."""
