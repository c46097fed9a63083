package config

import (
	"time"

	"github.com/observerd/observerd/internal/config/field"
	"github.com/observerd/observerd/internal/fn"
)

// The ways to detect what happened to a row.
const (
	// DetectNew makes one event of each key, ever.
	DetectNew = "new"
	// DetectChange makes an event of each new content of a row.
	DetectChange = "change"
	// DetectSnapshot reads every row each time, and notices rows that are
	// gone too.
	DetectSnapshot = "snapshot"
)

// Observer is one query of a source and what becomes of its rows.
type Observer struct {
	// ID names the observer and the stream of its events: letters a-z, digits
	// and "-", at most 64. Required.
	ID string `key:"id" shown:"required" required:"true" unit:"name"`
	// Type is the observer type: order, inventory, wes or a name of your own,
	// of the same letters. Observers of one type are polled together, under
	// one lock. Required.
	Type string `key:"type" shown:"required" required:"true" unit:"name"`
	// Source is a name under sources. Required.
	Source string `key:"source" shown:"required" required:"true" unit:"name"`
	// Table is a table or view, optionally with its schema. Either this or
	// Query is set.
	Table string `key:"table" shown:"this or query is required" unit:"identifier"`
	// Query is a SELECT. A semicolon at its end is left out.
	Query string `key:"query" shown:"this or table is required" unit:"SQL"`
	// Key are the columns of the natural key: one name or a list. Default: the
	// primary key of the table; required for a query.
	Key []string `key:"key" shown:"the primary key" unit:"columns"`
	// Timestamp is the column that says when a row changed last. Without it
	// every poll reads every row. Default: none.
	Timestamp string `key:"timestamp" unit:"column"`
	// Columns become the event's data. Default: all of them.
	Columns []string `key:"columns" shown:"all" unit:"columns"`
	// Redact says what becomes of columns before a value of them leaves the poll: drop, hash
	// or mask, by the column's name. Default: nothing.
	Redact Redactions `key:"redact" entry:"way to redact a column" oneof:"drop|hash|mask"`
	// RedactKeyFile is a file that holds the key of the hashes, at least 32 bytes. It
	// is read when the configuration is loaded. Required by hash.
	RedactKeyFile string `key:"redact-key-file" shown:"required by hash" unit:"file name"`
	// Event is the type of the events. Default: by type; StockCountObservedEvent
	// for a type stock-count that is not built in.
	Event string `key:"event" shown:"by type" unit:"text"`
	// Detect is new, change or snapshot. Default: by type; for types that are not
	// built in change, or without a timestamp snapshot.
	Detect string `key:"detect" shown:"by type" oneof:"new|change|snapshot"`
	// ChunkSize is how many rows are compared and committed together.
	// Default: 5000.
	ChunkSize int `key:"chunk-size" default:"5000" min:"1" max:"100000" unit:"rows"`
	// Start is where a stream that was never polled begins: beginning, now, or
	// a timestamp in RFC 3339. Rows below it are left to a backfill. It needs a
	// timestamp, and a detection other than snapshot. Default: beginning.
	Start string `key:"start" default:"beginning" unit:"beginning, now, timestamp"`
	// MaxChanged is how many new or changed rows one poll takes before it ends;
	// the next goes on from there. 0 is no limit. Default: 100000.
	MaxChanged int `key:"max-changed" default:"100000" unit:"rows"`
	// MaxRate is how many rows a second are read from the source; 0 is no
	// limit. Default: 0.
	MaxRate int `key:"max-rate" default:"0" unit:"rows per second"`
	// ReconcileAt is the time of day, HH:MM in the source's zone, from which
	// the range below the low-water mark is read again once, for rows that a
	// back-dated timestamp has hidden. Default: none, never.
	ReconcileAt string `key:"reconcile-at" unit:"HH:MM"`
	// ReconcileWindow is how far back that goes; 0 is everything. Default: 0.
	ReconcileWindow time.Duration `key:"reconcile-window" default:"0s"`
	// Overlap is how far behind the source's clock the horizon stays. nil
	// means that it was not set: then it is 1 minute where a source cannot
	// tell its open transactions, and nothing where it can. 0 is the same.
	Overlap *time.Duration `key:"overlap" shown:"1m where the source needs it"`
	// MaxLookback is how far the horizon may stay behind the source's clock
	// before that is an alarm; 0 never alarms. Default: 24 hours.
	MaxLookback time.Duration `key:"max-lookback" default:"24h"`
	// FreshnessObjective is how far back the stream may be known to be complete
	// before that is an alarm; 0 never alarms. nil means that it was not set:
	// see [Type.FreshnessObjective].
	FreshnessObjective *time.Duration `key:"freshness-objective" shown:"15m, or 3 × fixed-delay if that is more, and overlap"`
	// NullTimestamp says what becomes of rows without a timestamp: include
	// reads them in every poll, skip leaves them out, error makes them poison
	// rows. Default: include.
	NullTimestamp string `key:"null-timestamp" default:"include" oneof:"include|skip|error"`
	// MaxRowBytes bounds the JSON of one row; a larger row is a poison row.
	// Default: 1 MiB.
	MaxRowBytes int `key:"max-row-bytes" default:"1048576" min:"1024" max:"8388608" unit:"bytes"`
	// MaxGone is the largest part of the known rows that one snapshot may
	// find gone; more is taken for a broken source. Above 0%; a single row may
	// always be gone, all of them never. Default: 20%.
	MaxGone Percent `key:"max-gone" default:"20%"`
	// FixedDelay is the distance between the starts of this observer's polls, a
	// multiple of its type's. 0 means the type's. Default: 0.
	FixedDelay time.Duration `key:"fixed-delay" shown:"that of its type" min:"1s"`
	// NotBetween is a time of day in which no poll of the observer begins, beside
	// that of its type: 22:00-06:00 Europe/Berlin. Default: empty, none.
	NotBetween string `key:"not-between" unit:"HH:MM-HH:MM ZONE"`
	// PollTimeout bounds one poll. Default: 5 minutes.
	PollTimeout time.Duration `key:"poll-timeout" default:"5m" min:"1s"`
	// Enabled is the switch of the observer. Default: true.
	Enabled bool `key:"enabled" default:"true"`

	hashKey field.Secret
}

// The ways to redact a column.
const (
	RedactDrop = "drop"
	RedactHash = "hash"
	RedactMask = "mask"
)

// Redactions are the ways in which columns are redacted, by their names.
type Redactions map[string]string

// HashKey is what RedactKeyFile holds; empty where nothing is hashed.
func (o Observer) HashKey() field.Secret { return o.hashKey }

// Window is the time of day that NotBetween names; nil for none.
func (o Observer) Window() *Window { return mustWindow(o.NotBetween) }

// builtin is what a built-in type presets.
type builtin struct{ name, event, detect string }

// builtins returns the types that exist without an observer, sorted by name.
func builtins() []builtin {
	return []builtin{
		{"inventory", "InventoryObservedEvent", DetectSnapshot},
		{"order", "NewOrderObservedEvent", DetectNew},
		{"wes", "WesTaskPolledEvent", DetectChange},
	}
}

func builtinNames() []string { return fn.Each(builtins(), func(b builtin) string { return b.name }) }
