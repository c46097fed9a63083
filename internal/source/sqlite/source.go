package sqlite

import (
	"context"
	"errors"
	"net/url"
	"strconv"
	"strings"
	"time"

	_ "modernc.org/sqlite" // the driver "sqlite"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source"
)

const (
	defaultPoolSize = 4
	// maxBusy bounds the wait for a writer that locks out readers.
	maxBusy = 5 * time.Second
	maxIdle = 1
)

// Options is what a source is opened with.
type Options = source.Options

// Source reads one database file. It is safe for concurrent use.
type Source struct {
	options Options
	db      *pool
	session session // on any connection
}

// Open prepares a source. The file is opened at the first use, so it may be
// missing until then.
func Open(options Options) (*Source, error) {
	o := options.WithDefaults(defaultPoolSize)
	path, err := parseURL(o.URL)
	if err != nil {
		return nil, err
	}
	db := &pool{path: path, dsn: dsn(path, min(maxBusy, o.QueryTimeout)), size: o.PoolSize}
	return &Source{options: o, db: db, session: session{db, path}}, nil
}

// Close closes the file. It waits for statements that are running.
func (s *Source) Close() error { return s.db.close() }

func parseURL(text string) (string, error) {
	path, ok := strings.CutPrefix(text, "sqlite:")
	path = strings.TrimPrefix(path, "//")
	switch {
	case !ok || path == "":
		return "", errors.New("sqlite url cannot be read: use sqlite:path/to/file.db")
	case strings.ContainsAny(path, "?\x00"):
		return "", errors.New("sqlite url takes no parameters: use sqlite:path/to/file.db")
	case strings.HasPrefix(path, ":"):
		return "", errors.New("sqlite url names a database in memory, which no other process can fill")
	}
	return path, nil
}

// dsn opens the file read-only twice over: mode=ro for the file, query_only for
// the session, which also keeps temporary tables out.
func dsn(path string, busy time.Duration) string {
	escaped := strings.NewReplacer("%", "%25", "?", "%3F", "#", "%23").Replace(path)
	if strings.HasPrefix(escaped, "//") {
		escaped = "//" + escaped // "//x" would name a host.
	}
	parameters := url.Values{
		"mode":          {"ro"},
		"_query_only":   {"1"},
		"_busy_timeout": {strconv.FormatInt(busy.Milliseconds(), 10)},
	}
	return "file:" + escaped + "?" + parameters.Encode()
}

// SQL returns the statements that Read would run, for people and for EXPLAIN.
func (s *Source) SQL(ctx context.Context, q observer.Query, in observer.Range) (source.SQL, error) {
	ctx, cancel := s.deadline(ctx)
	defer cancel()
	p, err := s.session.plan(ctx, q, in)
	return source.Texts(p.steps, func(s step) (full, plain string) { return s.sql, s.plain }), err
}

// deadline bounds a small statement.
func (s *Source) deadline(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, s.options.QueryTimeout, source.ErrTimeout)
}

// session runs statements on any connection to the file, or in a transaction on one.
// Its errors say what was being done.
type session struct {
	db   source.Querier
	path string // of the file
}
