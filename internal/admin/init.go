package admin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/observerd/observerd/internal/config"
	"github.com/observerd/observerd/internal/config/dburl"
	"github.com/observerd/observerd/internal/fn"
	"github.com/observerd/observerd/internal/nearest"
	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source"
	"github.com/observerd/observerd/internal/source/access"
	"github.com/observerd/observerd/internal/wiring"
)

const (
	// maxListed bounds the tables that are looked at.
	maxListed = 5000
	// maxDrafted is how many observers a first configuration switches on: a person reads it.
	maxDrafted = 20
	// maxSampled bounds the tables of which a sample is read, samplesTime all of these reads,
	// and sampleTime each.
	maxSampled  = 200
	samplesTime = 10 * time.Second
	sampleTime  = 2 * time.Second
)

// InitOptions say of which database a configuration is made. URL and Timeout are required.
type InitOptions struct {
	// URL is that of the database, Password what replaces its password where PasswordFile,
	// which the configuration names then, is not empty.
	URL, PasswordFile, Password string
	// Tables are names, or globs of names, with their schema or without; none means all.
	Tables []string
	// Out is the file of the configuration, empty for none yet: the coordination database
	// is beside it.
	Out string
	// Timeout bounds the look at the database.
	Timeout time.Duration
}

// Initial is a first configuration.
type Initial struct {
	Text string
	// Active are the observers that are switched on, Doubtful those that are commented out.
	Active, Doubtful int
	// Variables have to be set before it is loaded.
	Variables []string
	// Choices are those of all tables, in the order of the text.
	Choices []Choice
}

// Choice is how a table is observed.
type Choice struct {
	Table string
	// Active says that the observer is switched on.
	Active bool
	// Timestamp is empty for an observer that reads all rows.
	Timestamp, Detect string
	// Newest is the newest time, in a sample, of the best column; zero without any, and of
	// a business date.
	Newest time.Time
	// Reason has no value of a row.
	Reason string
}

// ArgumentError is a fault of the arguments of [Init].
type ArgumentError struct{ error }

// Unwrap returns the fault itself.
func (e ArgumentError) Unwrap() error { return e.error }

// Init makes a configuration of what a database has. It holds no secret. A fault of the
// arguments is an [ArgumentError].
func Init(ctx context.Context, o InitOptions) (Initial, error) {
	u, err := o.url()
	if err != nil {
		return Initial{}, ArgumentError{err}
	}
	src, err := wiring.OpenSource(string(u.Dialect()), source.Options{URL: u.Reveal(), QueryTimeout: o.Timeout})
	if err != nil {
		return Initial{}, ArgumentError{err}
	}
	defer src.Close() // It was only read.
	ctx, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	i := initialiser{InitOptions: o, url: u, source: src, name: cmp.Or(slug(withoutEnding(u)), "source")}
	if err := i.draft(ctx); err != nil {
		return Initial{}, i.explained(ctx, err)
	}
	return i.render(), nil
}

// schemeOf is for a text that is not a URL of a known kind.
func schemeOf(text string) string {
	scheme, _, ok := strings.Cut(text, "://")
	if !ok || strings.ContainsFunc(scheme, func(r rune) bool { return r < 'a' || r > 'z' }) {
		return ""
	}
	return scheme
}

func (o InitOptions) url() (dburl.URL, error) {
	kinds := wiring.Kinds().Servers
	u, err := kinds.ParseURL(o.URL)
	if err != nil {
		var schemes []string
		for _, kind := range kinds {
			schemes = append(append(schemes, kind.Scheme), kind.Aliases...)
		}
		scheme := schemeOf(o.URL)
		if near := nearest.Name(scheme, schemes); near != "" && near != scheme {
			return u, fmt.Errorf("%w; for %s write %s://", err, scheme, near)
		}
		return u, err
	}
	switch {
	case o.PasswordFile == "":
		return u, nil
	case u.Dialect() == dburl.SQLite:
		return u, errors.New("an SQLite file has no password; leave --password-file out")
	}
	return kinds.WithPassword(u, o.Password)
}

func withoutEnding(u dburl.URL) string {
	name := u.Database()
	if u.Dialect() == dburl.SQLite {
		return strings.TrimSuffix(name, filepath.Ext(name))
	}
	return name
}

// initialiser is one run of Init.
type initialiser struct {
	InitOptions
	url    dburl.URL
	source source.Database
	name   string // of the source in the configuration
	drafts []draft
}

// explained says of a failure of the database what to do.
func (i *initialiser) explained(ctx context.Context, err error) error {
	class := observer.ClassOf(err)
	switch {
	case class == observer.ClassUnreachable:
		return fmt.Errorf("%s: %w; use another host, port or file, or start the database", i.url, err)
	case access.NoSession(class):
		return wiring.Mistake(fmt.Errorf("%s: %w; use the right user, password and database", i.url, err))
	case ctx.Err() != nil:
		return fmt.Errorf("%s: %w: no answer within %s; use a longer --timeout, or fewer tables with --table", i.url, observer.ErrUnreachable, i.Timeout)
	case wiring.Passes(class):
		return fmt.Errorf("%s: %w", i.url, err)
	case class != "":
		return wiring.Mistake(fmt.Errorf("%s: %w; use the URL of another database", i.url, err))
	}
	return err
}

// draft makes an observer of each table that was chosen, the best ones first.
func (i *initialiser) draft(ctx context.Context) error {
	tables, err := i.source.Tables(ctx, maxListed)
	if err != nil {
		return err
	}
	if len(tables) == 0 {
		return wiring.Mistake(fmt.Errorf("%s has no table or view that this account may read; use the URL of another database or account, "+
			"or grant this one SELECT on the tables to observe (docs/sources.md has the statements)", i.url))
	}
	if tables, err = choose(tables, i.Tables); err != nil {
		return err
	}
	now := time.Now()
	i.drafts = fn.Each(tables, func(t source.Table) draft { return newDraft(t, now) })
	slices.SortStableFunc(i.drafts, compareDrafts)
	i.sample(ctx, now)
	slices.SortStableFunc(i.drafts, compareDrafts)
	i.nameDrafts()
	active := 0
	for n := range i.drafts {
		d := &i.drafts[n]
		switch {
		case d.doubt != "":
		case active == maxDrafted:
			d.doubt = fmt.Sprintf("Commented out because %d observers are enough to begin with.", maxDrafted)
			d.reason = fmt.Sprintf("the %d tables above are better", maxDrafted)
		default:
			if err := i.try(ctx, d); err != nil {
				return err
			}
			if d.doubt == "" {
				active++
			}
		}
	}
	slices.SortStableFunc(i.drafts, compareDrafts)
	return nil
}

// sample decides anew with a sample of each table, the best ones first, as long as there
// is time. A table of which none is read keeps its draft.
func (i *initialiser) sample(ctx context.Context, now time.Time) {
	ctx, cancel := context.WithTimeout(ctx, min(i.Timeout/3, samplesTime))
	defer cancel()
	for n := range min(len(i.drafts), maxSampled) {
		t := i.drafts[n].table
		if t.View || len(t.Key) == 0 || !isNamed(t) {
			continue
		}
		one, end := context.WithTimeout(ctx, sampleTime)
		err := i.source.Sample(one, &t)
		i.drafts[n] = newDraft(t, now)
		i.drafts[n].unread = err != nil
		end()
	}
}

// choose returns the tables that one of the patterns matches; each has to match one.
func choose(tables []source.Table, patterns []string) ([]source.Table, error) {
	if len(patterns) == 0 {
		return tables, nil
	}
	chosen := make([]bool, len(tables))
	for _, pattern := range patterns {
		found := false
		for n, t := range tables {
			matches, err := matchesTable(pattern, t)
			if err != nil {
				return nil, ArgumentError{fmt.Errorf("--table %q is not a pattern; use a name, with * and ? for letters", pattern)}
			}
			chosen[n], found = chosen[n] || matches, found || matches
		}
		if !found {
			return nil, ArgumentError{noTable(pattern, tables)}
		}
	}
	var all []source.Table
	for n, t := range tables {
		if chosen[n] {
			all = append(all, t)
		}
	}
	return all, nil
}

func matchesTable(pattern string, t source.Table) (bool, error) {
	pattern = strings.ToLower(pattern)
	full, err := path.Match(pattern, strings.ToLower(t.FullName()))
	if full || err != nil {
		return full, err
	}
	return path.Match(pattern, strings.ToLower(t.Name))
}

func noTable(pattern string, tables []source.Table) error {
	names := fn.Each(tables, source.Table.FullName)
	text := fmt.Sprintf("--table %q matches no table that this account may read", pattern)
	if near := source.Nearest(pattern, names); len(near) > 0 {
		return fmt.Errorf("%s; use %s", text, strings.Join(near, " or "))
	}
	return fmt.Errorf("%s; there is %s", text, strings.Join(names[:min(len(names), 10)], ", "))
}

// nameDrafts gives each observer an id and a type that no other has.
func (i *initialiser) nameDrafts() {
	taken := make(map[string]bool)
	for n := range i.drafts {
		d := &i.drafts[n]
		base := cmp.Or(slug(ordinal.ReplaceAllString(d.table.Name, "")), "table")
		name, id := base, shortened(i.name+"-"+base, 0)
		for count := 2; taken[id] || taken["type "+name]; count++ {
			suffix := fmt.Sprintf("-%d", count)
			name = shortened(base, len(suffix)+len(i.name)+1) + suffix
			id = shortened(i.name+"-"+name, 0)
		}
		d.id, d.typ = id, name
		taken[id], taken["type "+name] = true, true
	}
}

// ordinal is what puts the tables of a schema into an order, as in 0_sales_orders.
var ordinal = regexp.MustCompile(`^[0-9]+[_ -]+`)

// maxName is the length of an id or a type.
const maxName = 64

// shortened leaves room for what follows.
func shortened(name string, room int) string {
	return strings.TrimRight(name[:min(len(name), max(maxName-room, 1))], "-")
}

// slug makes a name of a configuration of another: letters a-z and digits, with single
// dashes between. It is empty where nothing of the name is such.
func slug(name string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(name) {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			b.WriteRune(r)
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "-"):
			b.WriteByte('-')
		}
	}
	return shortened(strings.TrimRight(b.String(), "-"), maxName/2)
}

// try asks the source whether it could poll the observer, and comments it out where not.
func (i *initialiser) try(ctx context.Context, d *draft) error {
	o := config.Observer{
		ID: d.id, Source: i.name, Table: d.table.FullName(), Key: d.table.Key, Timestamp: d.timestamp(), Detect: d.detect,
		ReconcileAt: d.reconcileAt, NullTimestamp: string(observer.NullInclude),
	}
	found, err := i.source.Describe(ctx, wiring.Query(o))
	if err == nil {
		if d.withOverlap = d.time != nil && !found.HorizonExact; d.withOverlap {
			d.note("Open transactions are not visible here. Set overlap longer than your longest transaction, or rows that commit later after their %s are missed.", d.time.Name)
		}
		for _, f := range judge(o, found) {
			if f.isError() {
				err = errors.New(f.Text)
			}
		}
	}
	switch {
	case err == nil:
	case ctx.Err() != nil, access.NoSession(observer.ClassOf(err)):
		return err
	default:
		d.notes, d.doubt, d.reason = nil, "Commented out because it cannot be polled: "+err.Error()+".", "it cannot be polled"
	}
	return nil
}
