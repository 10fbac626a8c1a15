"""GP-UCB and its kin: what plays by a joint posterior of all arms belongs here, whatever gives it its features."""
