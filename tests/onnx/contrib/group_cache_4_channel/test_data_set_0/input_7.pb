Bk_scaleJ€öaM>žxP>Ð†T>ÈšV>ò@V>Ç
Q>•ÝP>¬ÃN>q>èa>êP>U€V>N¥r>Ôƒ>•ÉO>lQ>C[>X^>&¤Q>"DN>n*h>’‰`>,QQ>nP>àO>ÓV>IƒW>ìQX>ñsT>,T]>9ÑU>#a>