"""Grade what students have handed in, without trusting it."""
