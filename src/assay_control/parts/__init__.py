"""The parts of methods: targets, fits, actor losses, regularisers, sources, schedules, explorers."""
