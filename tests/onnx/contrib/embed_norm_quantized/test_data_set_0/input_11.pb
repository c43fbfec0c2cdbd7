Bgamma_scaleJ
ף<