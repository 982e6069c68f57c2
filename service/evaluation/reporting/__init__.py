"""What came of runs: figures of one, comparisons of several, and the pages that show them."""
