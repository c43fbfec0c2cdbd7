B
gamma_zeroJ
