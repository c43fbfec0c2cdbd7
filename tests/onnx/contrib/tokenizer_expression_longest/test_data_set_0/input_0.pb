2
ababab abc2cabBx