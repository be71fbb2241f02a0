"""Protocols on mosaics: is evidence for a class on the cells that show it?"""
