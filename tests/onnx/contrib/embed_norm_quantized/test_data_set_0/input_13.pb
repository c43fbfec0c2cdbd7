B
words_zeroJx