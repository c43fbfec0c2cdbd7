
BwordsJPŠN¸ö¥aH5ÂTuæóútc}ƒ˜—Ö£LÊÃ÷‹gúo(ôfgÂ`àÛ.x¤jI­]„ÇR}ÅêÔ‹*ÚÆpµª%DÛ•©a0'ŠOëL3|