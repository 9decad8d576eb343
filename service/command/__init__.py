"""`fillmask`: fills on the command line, of one text or of a whole file. No HTTP."""
