Bwords_scaleJ
ף<