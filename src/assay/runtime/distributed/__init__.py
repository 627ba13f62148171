"""A learner shared by several processes: mesh, workers, collectives, FSDP2, checkpoints."""
