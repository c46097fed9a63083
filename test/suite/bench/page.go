package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"os"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/observerd/observerd/test/kit/daemon"
	"github.com/observerd/observerd/test/kit/testbed"
)

const (
	// pageObservers are on the page, viewers look at it, each as often as its script asks.
	pageObservers = 200
	viewers       = 50
	viewEvery     = 2 * time.Second

	goalPage      = 100 << 10
	goalFirstByte = 100 * time.Millisecond
)

// views are the requests of one or more viewers.
type views struct {
	firstByte  []time.Duration
	bytes      int64
	statements float64 // of all of the coordination database, a second
}

// measurePage has people look at the page of a node with many observers, beside a log and
// locks of the usual sizes.
func measurePage(ctx context.Context, s *suite) (_ []figure, err error) {
	folder, err := os.MkdirTemp("", "observerd-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	c, err := s.pageConfig(ctx, folder)
	if err != nil {
		return nil, err
	}
	m, _, err := openManager(ctx, c.Database)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, m.Close(ctx)) }()
	if err := errors.Join(fillLog(ctx, c.Database, feedStreams, s.rows/feedStreams), s.manyLocks(ctx, m, c.Database)); err != nil {
		return nil, err
	}
	bed := testbed.Testbed{Options: testbed.Options{Folder: folder}}
	if bed.Binary, err = testbed.Binary(ctx, "", folder); err != nil {
		return nil, err
	}
	p, err := bed.Start(ctx, "page", c)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, testbed.Stop(ctx, p)) }()
	if err := live(ctx, p, s.warmup); err != nil {
		return nil, err
	}
	var seen [3]views
	for i, n := range []int{0, 1, viewers} {
		s.progress("page: %d viewers for %s", n, s.idle/4)
		if seen[i], err = s.view(ctx, p, c.Database, n); err != nil {
			return nil, err
		}
	}
	return pageFigures(s, seen[0], seen[1], seen[2]), nil
}

// pageConfig is the idle node's with many observers on its three tables.
func (s *suite) pageConfig(ctx context.Context, folder string) (daemon.Config, error) {
	c, err := s.idleConfig(ctx, folder)
	if err != nil {
		return c, err
	}
	c.Database, err = s.cluster.coordination(ctx, "page")
	for n := range pageObservers - len(c.Observers) {
		c.Observers = append(c.Observers, fmt.Sprintf("{id: stock-%d, type: inventory, source: warehouse, table: stock, key: sku}", n+1))
	}
	return c, err
}

// view has n viewers look at the page for a while.
func (s *suite) view(ctx context.Context, p *daemon.Process, where string, n int) (seen views, err error) {
	conn, err := pgx.Connect(ctx, where)
	if err != nil {
		return views{}, err
	}
	defer func() { err = errors.Join(err, conn.Close(context.WithoutCancel(ctx))) }()
	before, _, err := statistics(ctx, conn, where)
	if err != nil {
		return views{}, err
	}
	began := time.Now()
	each := make([]views, n)
	var viewing errgroup.Group
	for i := range each {
		viewing.Go(func() error { return s.look(ctx, p, time.Duration(i)*viewEvery/viewers, &each[i]) })
	}
	err = errors.Join(live(ctx, p, s.idle/4), viewing.Wait())
	after, _, failed := statistics(ctx, conn, where)
	seen.statements = float64(after-before) / time.Since(began).Seconds()
	for _, one := range each {
		seen.bytes = max(seen.bytes, one.bytes)
		seen.firstByte = slices.Concat(seen.firstByte, one.firstByte)
	}
	return seen, errors.Join(err, failed)
}

// look asks for the page every two seconds, as a tab does, from some moment on.
func (s *suite) look(ctx context.Context, p *daemon.Process, from time.Duration, seen *views) error {
	address, err := p.Address()
	if err != nil {
		return err
	}
	browser := &http.Client{Transport: &http.Transport{}, Timeout: 10 * time.Second}
	defer browser.CloseIdleConnections()
	for end := time.Now().Add(s.idle / 4); ; from = viewEvery {
		if time.Now().Add(from).After(end) && seen.firstByte != nil {
			return nil
		}
		if err := live(ctx, p, from); err != nil {
			return err
		}
		asked := time.Now()
		traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
			GotFirstResponseByte: func() { seen.firstByte = append(seen.firstByte, time.Since(asked)) },
		})
		request, err := http.NewRequestWithContext(traced, http.MethodGet, "http://"+address+"/", http.NoBody)
		if err != nil {
			return err
		}
		response, err := browser.Do(request)
		if err != nil {
			return err
		}
		n, err := io.Copy(io.Discard, response.Body)
		if err = errors.Join(err, response.Body.Close()); err != nil {
			return err
		}
		if response.StatusCode != http.StatusOK {
			return fmt.Errorf("the page answers %s", response.Status)
		}
		seen.bytes = n
	}
}

func pageFigures(s *suite, none, one, many views) []figure {
	group := fmt.Sprintf("The page: %d observers, %s events, %s locks", pageObservers, thousands(s.rows), thousands(s.many))
	p99 := quantile(many.firstByte, 0.99)
	return []figure{{
		group: group, what: "size", value: say("%s bytes", whole(many.bytes)),
		goal: "at most 100 KiB", met: []bool{many.bytes <= goalPage},
	}, {
		group: group, what: fmt.Sprintf("first byte, %d viewers", viewers),
		value:  say("p50 %s ms, p99 %s ms", milliseconds(median(many.firstByte)), milliseconds(p99)),
		beside: say("one viewer p50 %s ms", milliseconds(median(one.firstByte))),
		goal:   "p99 under 100 ms", met: []bool{p99 < goalFirstByte},
	}, {
		group: group, what: fmt.Sprintf("transactions of the coordination database, %d viewers", viewers),
		value:  say("%s a second", decimal(many.statements, 1)),
		beside: say("one viewer %s, nobody %s", decimal(one.statements, 1), decimal(none.statements, 1)),
	}}
}
