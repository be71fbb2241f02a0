"""The study of FunnyBirds: docs/results/funnybirds.md."""
