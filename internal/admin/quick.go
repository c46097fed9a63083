package admin

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/observerd/observerd/internal/config"
	"github.com/observerd/observerd/internal/source"
)

// QuickOptions say what a node without a file polls. URL and Timeout are required.
type QuickOptions struct {
	InitOptions
	// Timestamp and Key are columns of each of Tables, which then are names, not globs. Without
	// any of these, [Init] chooses. Without Key it is the primary key; without Timestamp each
	// poll reads all rows.
	Timestamp string
	Key       []string
}

// Quick makes a configuration for a node that prints events, and what is set above it:
// the URL by its key, which may hold a secret. A fault of the arguments is an [ArgumentError].
func Quick(ctx context.Context, o QuickOptions) (text string, settings map[string]string, err error) {
	u, err := o.url()
	if err != nil {
		return "", nil, ArgumentError{err}
	}
	name := cmp.Or(slug(withoutEnding(u)), "source")
	settings = map[string]string{"sources." + name + ".url": literal(u.Reveal())}
	if o.Timestamp == "" && len(o.Key) == 0 {
		made, err := Init(ctx, o.InitOptions)
		if err == nil && made.Active == 0 {
			err = ArgumentError{errors.New("no table can be polled as it is; name one with --table, and set --timestamp to a column that says when a row changed, " +
				"or --key to columns that identify a row. 'observerd init URL' gives the reason for each table")}
		}
		return made.Text, settings, err
	}
	if len(o.Tables) == 0 {
		return "", nil, ArgumentError{errors.New("--timestamp and --key need --table")}
	}
	i := initialiser{InitOptions: o.InitOptions, url: u, name: name}
	for _, table := range o.Tables {
		dot := strings.LastIndexByte(table, '.')
		i.drafts = append(i.drafts, draft{table: source.Table{Schema: table[:max(dot, 0)], Name: table[dot+1:]}})
	}
	i.nameDrafts()
	var observers []map[string]any
	for _, d := range i.drafts {
		observer := map[string]any{
			"id": d.id, "type": d.typ, "source": name, "table": literal(d.table.FullName()), "event": d.event(), "detect": config.DetectSnapshot,
		}
		if len(o.Key) > 0 {
			observer["key"] = strings.Split(literal(strings.Join(o.Key, "\x00")), "\x00")
		}
		if o.Timestamp != "" {
			observer["timestamp"], observer["detect"], observer["overlap"] = literal(o.Timestamp), config.DetectChange, "1m"
		}
		observers = append(observers, observer)
	}
	made, err := json.Marshal(map[string]any{ // It is YAML as well.
		"sources":   map[string]any{name: map[string]any{"timezone": "UTC"}},
		"observers": observers,
		"sinks":     []map[string]any{{"id": "screen", "type": "stdout"}},
	})
	return string(made), settings, err
}

// literal is a value in which ${ is no variable.
func literal(value string) string { return strings.ReplaceAll(value, "${", "$${") }
