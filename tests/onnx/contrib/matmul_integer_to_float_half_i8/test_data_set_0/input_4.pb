
BbiasJç1h/¨6§9Ï<s¼º