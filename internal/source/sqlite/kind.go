package sqlite

import "github.com/observerd/observerd/internal/source"

// Kind is SQLite: a file, without accounts.
var Kind = source.Kind{Scheme: "sqlite", Open: func(o source.Options) (source.Database, error) { return Open(o) }}
