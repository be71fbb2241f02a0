"""Training of everything in models/zoo: one loop, the schedules, and a recipe for each network."""
