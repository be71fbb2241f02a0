"""The two learned algorithms of Tappen, Freeman and Adelson."""
