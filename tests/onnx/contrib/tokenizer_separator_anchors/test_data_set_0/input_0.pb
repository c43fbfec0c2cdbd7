2aba2a
abBx