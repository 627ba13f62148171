"""Worker processes that run verifiers: supervisor, dispatch, deadlines, results."""
