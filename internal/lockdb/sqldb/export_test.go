package sqldb

// AllSQL are the statements of the package. Find is of PostgreSQL alone.
type AllSQL struct {
	Table tableSQL
	Find  string
}

func AllTexts(backend string) AllSQL {
	texts := AllSQL{Table: tableTexts(backend)}
	if backend == "postgres" {
		texts.Find = findSQL
	}
	return texts
}
