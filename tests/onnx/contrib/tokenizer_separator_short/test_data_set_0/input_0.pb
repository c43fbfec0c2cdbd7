2ab c def2
日本 語Bx