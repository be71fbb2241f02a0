"""Networks whose ImageNet weights come in packages."""
