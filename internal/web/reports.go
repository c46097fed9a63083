package web

import (
	"context"
	"sync"
	"time"

	"github.com/observerd/observerd/internal/status"
)

// reportAge is how old a report may be that is shown: the database is read at most once
// in that time, however many ask.
const reportAge = time.Second

// reading is an attempt to read a report. It is not changed any more.
type reading struct {
	// report is that of the last attempt that went well, read at: zero before the first.
	report status.Report
	readAt time.Time
	// err is why this attempt, at triedAt, failed, as the others since failedAt; nil if it
	// went well.
	err               error
	triedAt, failedAt time.Time
	// page renders it once.
	page func() (rendered, error)
}

// report returns the report on the cluster, at most a second old, or why there is none.
func (s *Server) report(ctx context.Context) (status.Report, error) {
	r := s.read(ctx)
	return r.report, r.err
}

// read returns the last reading. Of those who find it too old, one makes the next, and the
// others wait for it.
func (s *Server) read(ctx context.Context) *reading {
	s.mu.Lock()
	defer s.mu.Unlock()
	if last := s.lastRead; last == nil || time.Since(last.triedAt) >= reportAge {
		s.lastRead = s.readAnew(ctx, last)
	}
	return s.lastRead
}

// readAnew reads the report for all who wait, and so to the end if this client leaves.
func (s *Server) readAnew(ctx context.Context, last *reading) *reading {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookupTimeout)
	defer cancel()
	defer context.AfterFunc(s.stopping, cancel)()
	report, err := s.options.Report(ctx)
	r := &reading{err: err, triedAt: time.Now()}
	switch {
	case err == nil:
		r.report, r.readAt = report, r.triedAt
	case last == nil:
		r.failedAt = r.triedAt
	default:
		r.report, r.readAt, r.failedAt = last.report, last.readAt, last.failedAt
		if last.err == nil {
			r.failedAt = r.triedAt
		}
	}
	if err != nil && (last == nil || last.err == nil) && s.stopping.Err() == nil {
		s.options.Logger.Warn("Status page without data", "err", err)
	}
	r.page = sync.OnceValues(func() (rendered, error) { return s.render(r) })
	return r
}
