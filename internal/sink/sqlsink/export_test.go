package sqlsink

// Settings are those of the configuration.
type Settings = settings

// Statements are what a sink runs, by name.
func Statements(schema string) map[string]string {
	s := newStatements(schema)
	return map[string]string{"1 claim": s.claim, "2 claimed": s.claimed, "3 positions": s.positions, "4 store": s.store, "5 storeNew": s.storeNew}
}
