"""The FunnyBirds protocol."""
