package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/observerd/observerd/internal/events"
	"github.com/observerd/observerd/test/kit/daemon"
	"github.com/observerd/observerd/test/kit/testbed"
	"github.com/observerd/observerd/test/kit/workload"
)

const (
	arrivalGroup = "From a commit to a sink, interval 1 s"
	// arrivalEvery is how often a row is committed. Polls are no multiple of it apart.
	arrivalEvery = 47 * time.Millisecond
	goalBehind   = 100 * time.Millisecond
)

// arrivals are events as a receiver meets them, by their subject.
type arrivals struct {
	mu sync.Mutex
	at map[string]time.Time
	// behind is how much later an event arrived than it was logged.
	behind []time.Duration
}

func newArrivals() *arrivals { return &arrivals{at: make(map[string]time.Time)} }

// take notes an event in its JSON form.
func (a *arrivals) take(text []byte) {
	now := time.Now()
	e, err := events.Decode(text)
	if err != nil {
		return // It is missed at the end.
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, known := a.at[e.Subject]; !known {
		a.at[e.Subject] = now
		a.behind = append(a.behind, now.Sub(e.Observed))
	}
}

func (a *arrivals) count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.at)
}

// since returns how long after its commit each row arrived.
func (a *arrivals) since(committed map[string]time.Time) (all []time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for id, at := range committed {
		all = append(all, a.at[id].Sub(at))
	}
	return all
}

// measureArrival has a node poll each second, and deliver to a file and a receiver.
func measureArrival(ctx context.Context, s *suite) (_ []figure, err error) {
	folder, err := os.MkdirTemp("", "observerd-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	posted, written := newArrivals(), newArrivals()
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		posted.take(body)
		w.WriteHeader(http.StatusNoContent)
	}))
	defer receiver.Close()
	bed := testbed.Testbed{Options: testbed.Options{Folder: folder}}
	if bed.Binary, err = testbed.Binary(ctx, "", folder); err != nil {
		return nil, err
	}
	c, err := s.idleConfig(ctx, folder)
	if err != nil {
		return nil, err
	}
	source := c.Sources["warehouse"]
	if err := testbed.Execute(ctx, source, "TRUNCATE orders"); err != nil {
		return nil, err
	}
	c.Observers, c.Interval = c.Observers[:1], time.Second
	c.Sinks = []string{fmt.Sprintf("{id: shop, type: webhook, url: %q}", receiver.URL)}
	node, err := bed.Start(ctx, "arrival", c)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, testbed.Stop(ctx, node)) }()
	if err := live(ctx, node, 3*c.Interval); err != nil {
		return nil, err
	}
	tail, stop := context.WithCancel(ctx)
	var tailing sync.WaitGroup
	var tailErr error
	tailing.Go(func() { tailErr = follow(tail, c.Files["file"], written.take) })
	committed, err := s.commitRows(ctx, node, source)
	if err == nil {
		err = testbed.Until(ctx, time.Minute, func() error {
			if posted.count() < len(committed) || written.count() < len(committed) {
				return fmt.Errorf("of %d rows %d have come to the receiver, and %d to the file", len(committed), posted.count(), written.count())
			}
			return nil
		})
	}
	stop()
	tailing.Wait()
	if err = errors.Join(err, tailErr); err != nil {
		return nil, err
	}
	behind := quantile(written.behind, 0.95)
	return []figure{
		arrivalFigure("webhook", posted.since(committed)), arrivalFigure("file", written.since(committed)),
		{
			group: arrivalGroup, what: "a webhook behind the event log",
			value: say("p50 %s ms, p95 %s ms", milliseconds(median(posted.behind)), milliseconds(quantile(posted.behind, 0.95))),
		},
		{
			group: arrivalGroup, what: "a file behind the event log",
			value: say("p50 %s ms, p95 %s ms", milliseconds(median(written.behind)), milliseconds(behind)),
			goal:  "p95 at most 100 ms", met: []bool{behind <= goalBehind},
		},
	}, nil
}

func arrivalFigure(sink string, took []time.Duration) figure {
	return figure{
		group: arrivalGroup, what: sink,
		value:  say("p50 %s ms, p99 %s ms", milliseconds(median(took)), milliseconds(quantile(took, 0.99))),
		beside: say("%s rows, one each %s ms", whole(len(took)), milliseconds(arrivalEvery)),
	}
}

// commitRows commits rows one by one, and returns when each was committed.
func (s *suite) commitRows(ctx context.Context, node *daemon.Process, source string) (_ map[string]time.Time, err error) {
	conn, err := pgx.Connect(ctx, source)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, conn.Close(context.WithoutCancel(ctx))) }()
	committed := make(map[string]time.Time)
	for until := time.Now().Add(s.arriving); time.Now().Before(until); {
		id := fmt.Sprint(workload.Mark, "-", len(committed))
		if _, err := conn.Exec(ctx, "INSERT INTO orders VALUES ($1, 1, 'RELEASED', clock_timestamp())", id); err != nil {
			return nil, err
		}
		committed[id] = time.Now()
		if err := live(ctx, node, arrivalEvery); err != nil {
			return nil, err
		}
	}
	return committed, nil
}

// follow gives the lines of a file that grows, until ctx ends.
func follow(ctx context.Context, path string, take func(line []byte)) error {
	file, err := os.Open(filepath.Clean(path))
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	var rest []byte
	buf := make([]byte, 64<<10)
	for ctx.Err() == nil {
		n, err := file.Read(buf)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		for rest = append(rest, buf[:n]...); ; {
			line, more, ended := bytes.Cut(rest, []byte("\n"))
			if !ended {
				break
			}
			take(line)
			rest = more
		}
		if n == 0 {
			_ = testbed.Wait(ctx, time.Millisecond) // It ends with ctx, as this does.
		}
	}
	return nil
}
