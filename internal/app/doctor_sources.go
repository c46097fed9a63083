package app

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/observerd/observerd/internal/config"
	"github.com/observerd/observerd/internal/doctor"
	"github.com/observerd/observerd/internal/observer"
)

// sourceLook bounds how long the doctor looks at a source.
const sourceLook = 10 * time.Second

// lookAtSources looks which sources are standbys, side by side. It matters to
// observers with a timestamp alone; a file is none.
func lookAtSources(ctx context.Context, cfg *config.Config) []doctor.Finding {
	readers := make(map[string][]config.Observer)
	var names []string
	for _, o := range cfg.Observers {
		if !o.Enabled || o.Timestamp == "" || cfg.Sources[o.Source].URL.Dialect() == config.SQLite {
			continue
		}
		if readers[o.Source] == nil {
			names = append(names, o.Source)
		}
		readers[o.Source] = append(readers[o.Source], o)
	}
	if len(names) == 0 {
		return nil
	}
	slices.Sort(names)
	sources, closed := validationSources(cfg, slog.New(slog.DiscardHandler))
	defer closed()
	found := make([]doctor.Finding, len(names))
	var work sync.WaitGroup
	for i, name := range names {
		work.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, sourceLook)
			defer cancel()
			standby, err := isStandby(ctx, sources, name, readers[name])
			found[i] = judgeSource(name, standby, err)
		})
	}
	work.Wait()
	return found
}

// isStandby asks the source by the first of the observers whose query it
// understands.
func isStandby(ctx context.Context, sources *opener, name string, readers []config.Observer) (standby bool, err error) {
	src, err := sources.open(name)
	if err != nil {
		return false, err
	}
	defer src.Close() // It was only read.
	for _, o := range readers {
		d, failed := src.Describe(ctx, query(o))
		if failed == nil {
			return d.Standby, nil
		}
		if err == nil {
			err = failed
		}
		if ctx.Err() != nil || noSession(observer.ClassOf(failed)) {
			break
		}
	}
	return false, err
}

func judgeSource(name string, standby bool, err error) doctor.Finding {
	f := doctor.Finding{Check: "sources"}
	switch {
	case err != nil:
		f.Severity, f.Saw = doctor.Note, fmt.Sprintf("source %s could not be looked at: %v", name, err)
		f.Why, f.Do = "Whether it is a standby is not known.", "'observerd validate' says more."
	case standby:
		f.Severity, f.Saw = doctor.Warning, fmt.Sprintf("source %s is a standby, which follows another server", name)
		f.Why = "It does not know the open transactions of its primary: the horizon is what it has applied, less the overlap. " +
			"A row that is committed there later than that after its timestamp is missed by the polls."
		f.Do = fmt.Sprintf("Name the primary in sources.%s.url. If it must be the standby, set the overlap of its observers to more than their longest transaction.", name)
	default:
		f.Severity, f.Saw = doctor.OK, fmt.Sprintf("source %s is no standby", name)
	}
	return f
}
