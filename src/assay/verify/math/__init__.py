"""Mathematical answers: an exact tier, and a symbolic one in processes that can be killed."""
