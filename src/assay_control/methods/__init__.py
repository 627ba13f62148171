"""Methods as compositions of parts."""
