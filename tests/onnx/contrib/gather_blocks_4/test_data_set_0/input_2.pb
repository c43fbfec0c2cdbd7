BzerosJ
i/δύ	"Κhτ