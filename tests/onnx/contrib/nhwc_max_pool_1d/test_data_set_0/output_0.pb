ByJ#/;BQª/;XQÔ/[XQxp[c&xpqc&xpqc$
2qW$ý