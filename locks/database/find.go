package database

import (
	"context"
	"strings"
	"time"

	"github.com/observerd/observerd/internal/fn"
	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lockdb"
	"github.com/observerd/observerd/internal/lockdb/sqldb"
)

var likeEscaper = strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`)

// findArgs returns the arguments of a search.
func (p *Provider) findArgs(q lock.Query) []any {
	parts := p.db.List(fn.Each(q.Parts, func(part string) string { return "%:" + likeEscaper.Replace(part) + ":%" }))
	row := ""
	if q.Key != "" {
		row = lockdb.RowKey(q.Key)
	}
	return []any{q.Region, q.Node, q.After.Row, q.After.Term, q.Limit, row, q.OlderThan.Seconds(), q.Expired, parts}
}

// Find implements [lock.Finder].
func (p *Provider) Find(ctx context.Context, q lock.Query) ([]lock.Held, error) {
	return sqldb.All(ctx, p.db, "find locks", p.sql.SQL().Find, func(scan sqldb.Scan, h *lock.Held) error {
		var mode string
		var ttl int64
		var acquired, touched, now time.Time
		err := scan(&h.Row, &h.Term, &mode, &h.Fence, &h.Name, &h.Node, &h.Descriptor, &h.Metadata, &ttl,
			sqldb.ScanTime(&acquired), &h.Mark, &h.Waiting, sqldb.ScanTime(&now))
		if err == nil {
			err = sqldb.ScanTime(&touched).Scan(h.Mark)
		}
		h.Row, h.Term = sqldb.Unpadded(h.Row), sqldb.Unpadded(h.Term)
		h.Key, h.Region, h.Mode, h.TTL = h.Name, q.Region, lock.Mode(mode), time.Duration(ttl)*time.Millisecond
		h.Age, h.Left = now.Sub(acquired), h.TTL-now.Sub(touched)
		return err
	}, p.findArgs(q)...)
}
