package admin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/observerd/observerd/internal/config"
	"github.com/observerd/observerd/internal/doctor"
	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source"
	"github.com/observerd/observerd/internal/source/access"
	"github.com/observerd/observerd/internal/wiring"
)

// sourceTimeout bounds the questions of the doctor to a source.
const sourceTimeout = 10 * time.Second

// checkSources checks concurrently whether the sources can be opened, which are
// standbys, and which other risks each has. Files have none, and a standby matters
// only to observers with a timestamp.
func checkSources(ctx context.Context, cfg *config.Config) []doctor.Finding {
	readers := make(map[string][]config.Observer)
	var names []string
	for _, o := range cfg.Observers {
		dialect := cfg.Sources[o.Source].URL.Dialect()
		if !o.Enabled || dialect == config.SQLite {
			continue
		}
		if !slices.Contains(names, o.Source) {
			names = append(names, o.Source)
		}
		if o.Timestamp != "" || dialect == config.Postgres {
			readers[o.Source] = append(readers[o.Source], o)
		}
	}
	if len(names) == 0 {
		return nil
	}
	slices.Sort(names)
	sources, closed := validationSources(cfg, slog.New(slog.DiscardHandler))
	defer closed()
	found := make([][]doctor.Finding, len(names))
	var work sync.WaitGroup
	for i, name := range names {
		work.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, sourceTimeout)
			defer cancel()
			of := readers[name]
			// Without a timestamp, the first would not show a standby.
			slices.SortStableFunc(of, func(a, b config.Observer) int {
				return cmp.Compare(min(len(b.Timestamp), 1), min(len(a.Timestamp), 1))
			})
			d, err := describe(ctx, sources, name, of)
			found[i] = judgeSource(name, d, err)
		})
	}
	work.Wait()
	return slices.Concat(found...)
}

// describe asks the source about the first of the observers whose query it
// understands.
func describe(ctx context.Context, sources *access.Opener, name string, readers []config.Observer) (d source.Description, err error) {
	src, err := sources.Open(name)
	if err != nil {
		return d, err
	}
	defer src.Close() // It was only read.
	for _, o := range readers {
		d, failed := src.Describe(ctx, wiring.Query(o))
		if failed == nil {
			return d, nil
		}
		if err == nil {
			err = failed
		}
		if ctx.Err() != nil || access.NoSession(observer.ClassOf(failed)) {
			break
		}
	}
	return d, err
}

func judgeSource(name string, d source.Description, err error) []doctor.Finding {
	const check = "sources"
	f := doctor.Finding{Check: check}
	switch {
	case errors.Is(err, access.ErrMissingFile):
		f.Severity, f.Saw = doctor.Problem, fmt.Sprintf("source %s lacks a file: %v", name, err)
		f.Why, f.Do = "Its observers fail until the file is there and this user may read it. Those of other sources go on.",
			fmt.Sprintf("Put the file there, or name another one below sources.%s.", name)
	case errors.Is(err, wiring.ErrMistake):
		f.Severity, f.Saw = doctor.Problem, fmt.Sprintf("source %s cannot be opened: %v", name, err)
		f.Why, f.Do = "A node with this configuration does not start.", fmt.Sprintf("Correct sources.%s.url.", name)
	case err != nil:
		f.Severity, f.Saw = doctor.Note, fmt.Sprintf("source %s could not be looked at: %v", name, err)
		f.Why, f.Do = "Whether it is a standby is not known.", "'observerd validate' says more."
	case d.Standby:
		f.Severity, f.Saw = doctor.Warning, fmt.Sprintf("source %s is a standby, which follows another server", name)
		f.Why = "It does not know the open transactions of its primary: the horizon is what it has applied, less the overlap. " +
			"A row that is committed there later than that after its timestamp is missed by the polls."
		f.Do = fmt.Sprintf("Name the primary in sources.%s.url. If it must be the standby, set the overlap of its observers to more than their longest transaction.", name)
	default:
		f.Severity, f.Saw = doctor.OK, fmt.Sprintf("source %s is no standby", name)
	}
	var findings []doctor.Finding
	if err != nil || d.Timestamp != "" {
		findings = append(findings, f)
	}
	for _, r := range d.Risks {
		findings = append(findings, doctor.Finding{
			Check: check, Severity: doctor.Warning, Saw: fmt.Sprintf("source %s: %s", name, r.Saw), Why: r.Why, Do: r.Do,
		})
	}
	return findings
}
