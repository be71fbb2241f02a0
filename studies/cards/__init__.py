"""Cards: one page of the site for every protocol, method and world; what they show was measured on small runs."""
