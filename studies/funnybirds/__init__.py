"""FunnyBirds: docs/results/funnybirds.md."""
