"""The Concept Sensitivity Metric."""
