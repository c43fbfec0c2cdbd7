
BbiasJ’8÷9Ó¸«p¸WÁ¸