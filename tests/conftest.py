"""Settings for the whole suite."""

import os

from hypothesis import HealthCheck, settings

# A busy machine must not turn a law into a flake: no deadlines, and in CI the same examples every time.
settings.register_profile("local", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", parent=settings.get_profile("local"), derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI", "").lower() in {"1", "true", "yes"} else "local")
