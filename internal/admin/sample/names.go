package sample

func warehouses() []string { return []string{"BERLIN", "HAMBURG"} }

func customers() []string {
	return []string{
		"Aldous Freight", "Bäckerei Möller", "Café Zürich", "Dunham & Sons", "Étoile du Nord",
		"Fjord Outfitters", "Garten-Center Süd", "Håkansson AB", "Iberia Tools", "Jansen Elektro",
	}
}

func articles() []string {
	return []string{
		"BOLT-M6", "BOLT-M8", "CABLE-2M", "CABLE-5M", "DRILL-18V", "GLOVES-L", "GLOVES-M", "HAMMER-500",
		"LAMP-E27", "PAINT-WHITE", "PUMP-12V", "SAW-300", "SCREW-4X40", "TAPE-50M", "WRENCH-13",
	}
}
