
BgateJÔ«ïµu¼