"""Cards: one page of the site for every protocol, method and world, with numbers measured in small runs."""
