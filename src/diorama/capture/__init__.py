"""The capture of Grosse et al. 2009 as functions: from photographs to R, S and C, and its rehearsal on rendered scenes."""
