
BbiasJŽ8Ì¹p¼w¸U<I·Ï³„¸