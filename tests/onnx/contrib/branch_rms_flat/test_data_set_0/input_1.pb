
BscaleJ
Ж§Ка?^Ж