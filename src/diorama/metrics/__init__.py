"""Pure array functions, each with its formula; they import nothing of ours."""
