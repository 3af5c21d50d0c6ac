"""What a host says of itself: /proc, ps, df, and who is logged in. Nothing raises."""
