"""Speed, measured in one run on one machine: what counts are the ratios."""
