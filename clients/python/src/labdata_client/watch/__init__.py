"""`labdata-watch`: uploads each new file of an instrument's folder."""
