
BgammaJz´;5'¬E¼D¼8>¹