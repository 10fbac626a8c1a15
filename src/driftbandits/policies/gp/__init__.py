"""GP-UCB and its kin: what plays by a joint posterior of all arms (of a kernel, of points, of a network) belongs here."""
