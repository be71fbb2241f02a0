"""Attribution methods: which pixels a model's output for a class rests on."""
