package stdout_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/observerd/observerd/internal/events"
	"github.com/observerd/observerd/internal/sink"
	"github.com/observerd/observerd/internal/sink/sinktest"
	"github.com/observerd/observerd/internal/sink/stdout"
	"github.com/observerd/observerd/test/kit/waittest"
)

func TestMain(m *testing.M) { waittest.VerifyNoLeaks(m) }

var batch, lines = sinktest.Batch, sinktest.Lines

// writer takes only so many bytes at a time, and counts the calls.
type writer struct {
	bytes.Buffer
	limits []int // of the next writes; none is left: no limit
	err    error
	calls  int
}

func (w *writer) Write(p []byte) (int, error) {
	w.calls++
	if len(w.limits) == 0 {
		return w.Buffer.Write(p)
	}
	limit := w.limits[0]
	w.limits = w.limits[1:]
	if limit >= len(p) {
		return w.Buffer.Write(p)
	}
	n, _ := w.Buffer.Write(p[:limit])
	return n, w.err
}

func deliver(t *testing.T, s *stdout.Sink, batch []events.Event) {
	t.Helper()
	for len(batch) > 0 { // As a relay does.
		n, err := sinktest.Deliver(t.Context(), s, batch)
		if n == 0 || err != nil {
			t.Fatalf("stored %d of %d: %v", n, len(batch), err)
		}
		batch = batch[n:]
	}
}

func TestContract(t *testing.T) {
	t.Parallel()
	sinktest.Run(t, func(*testing.T) sinktest.Harness {
		var (
			faults sinktest.Faults
			text   bytes.Buffer
		)
		s := stdout.New(through(func(p []byte) (int, error) { return faults.Write(p, text.Write) }))
		return sinktest.Harness{
			Open:   func(context.Context, sink.Term) (sink.Sink, error) { return s, nil }, // The process has one.
			Stored: func() ([]events.Event, error) { return sinktest.Read(text.Bytes()) },
			Tear:   faults.Tear, Refuse: faults.Refuse, Stall: faults.Stall,
			Repeats: true,
		}
	})
}

// through is an [io.Writer] that calls it.
type through func([]byte) (int, error)

func (write through) Write(p []byte) (int, error) { return write(p) }

func TestOneWriteABatch(t *testing.T) {
	t.Parallel()
	w := &writer{}
	s := stdout.New(w)
	deliver(t, s, batch("orders", 1, 100))
	deliver(t, s, batch("stock", 1, 3))
	if w.calls != 2 {
		t.Errorf("%d writes, want one a batch", w.calls)
	}
}

// TestShortWrite cuts the first write off at every byte, once for a relay that
// goes on with the same events and once for one that comes with others.
func TestShortWrite(t *testing.T) {
	t.Parallel()
	three, other := batch("orders", 1, 3), batch("stock", 1, 1)
	all := lines(three)
	for limit := range len(all) {
		for _, err := range []error{syscall.ENOSPC, nil} {
			w := &writer{limits: []int{limit}, err: err}
			s := stdout.New(w)
			stored, got := sinktest.Deliver(t.Context(), s, three)
			if whole := strings.Count(all[:limit], "\n"); stored != whole || got == nil {
				t.Fatalf("cut at %d: stored %d, want %d; error %v", limit, stored, whole, got)
			}
			deliver(t, s, three[stored:])
			if w.String() != all {
				t.Fatalf("cut at %d, then repeated: %q", limit, w.String())
			}

			w = &writer{limits: []int{limit}, err: err}
			s = stdout.New(w)
			stored, _ = sinktest.Deliver(t.Context(), s, three)
			deliver(t, s, other)
			if !strings.HasSuffix(w.String(), "\n"+lines(other)) && w.String() != lines(other) {
				t.Fatalf("cut at %d, then another stream: %q", limit, w.String())
			}
			deliver(t, s, three[stored:])
			if got := strings.Count(w.String(), "\n"+lines(three[2:])); got != 1 {
				t.Fatalf("cut at %d: the last event is there %d times", limit, got)
			}
		}
	}
}

// TestPrettyLinesStayWhole cuts the first write off at every byte.
func TestPrettyLinesStayWhole(t *testing.T) {
	t.Parallel()
	three, whole := batch("orders", 1, 3), &writer{}
	deliver(t, stdout.NewPretty(whole), three)
	all := whole.String()
	if strings.Count(all, "\n") != 3 || strings.Count(all, "  orders  ") != 3 || strings.Contains(all, "specversion") {
		t.Fatalf("got %q", all)
	}
	for limit := range len(all) {
		w := &writer{limits: []int{limit}, err: syscall.ENOSPC}
		s := stdout.NewPretty(w)
		stored, _ := sinktest.Deliver(t.Context(), s, three)
		if lines := strings.Count(all[:limit], "\n"); stored != lines {
			t.Fatalf("cut at %d: stored %d, want %d", limit, stored, lines)
		}
		deliver(t, s, three[stored:])
		if w.String() != all {
			t.Fatalf("cut at %d, then repeated: %q", limit, w.String())
		}
	}
}

// TestFormat: who reads decides, unless the configuration does.
func TestFormat(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		format           string
		terminal, pretty bool
	}{{"auto", false, false}, {"auto", true, true}, {"json", true, false}, {"pretty", false, true}} {
		settings := stdout.Kind.Settings()
		reflect.ValueOf(settings).Elem().FieldByName("Format").SetString(tc.format)
		w := &writer{}
		screen, err := settings.Opener(sink.Options{Stdout: w, Terminal: tc.terminal})(t.Context(), sink.Term{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := sinktest.Deliver(t.Context(), screen, batch("orders", 1, 1)); err != nil {
			t.Fatal(err)
		}
		if pretty := !strings.HasPrefix(w.String(), "{"); pretty != tc.pretty {
			t.Errorf("%+v: %s", tc, w)
		}
	}
}

// TestSeveralShortWrites goes on with a line again and again.
func TestSeveralShortWrites(t *testing.T) {
	t.Parallel()
	one := batch("orders", 1, 1)
	w := &writer{limits: []int{10, 0, 20, 1}, err: syscall.EAGAIN}
	s := stdout.New(w)
	for range 4 {
		if n, err := sinktest.Deliver(t.Context(), s, one); n != 0 || !errors.Is(err, syscall.EAGAIN) {
			t.Fatalf("got %d, %v", n, err)
		}
	}
	deliver(t, s, one)
	if w.String() != lines(one) {
		t.Errorf("got %q", w.String())
	}
}

func TestReaderHasGone(t *testing.T) {
	t.Parallel()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	r.Close()
	n, err := sinktest.Deliver(t.Context(), stdout.New(w), batch("orders", 1, 1))
	if n != 0 || !errors.Is(err, stdout.ErrClosed) {
		t.Errorf("got %d, %v, want ErrClosed", n, err)
	}
}

// TestReaderStandsStill lets a reader sleep through the deadlines of two
// streams' batches. Nothing may be printed twice, or mixed. In a bubble no
// deadline passes before the write has begun that is to outlast it.
func TestReaderStandsStill(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, w := io.Pipe()
		s := stdout.New(w)
		orders, stock := batch("orders", 1, 3), batch("stock", 1, 2)
		for _, b := range [][]events.Event{orders, stock, orders} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			if n, err := sinktest.Deliver(ctx, s, b); n != 0 || !errors.Is(err, context.DeadlineExceeded) {
				t.Fatalf("got %d, %v", n, err)
			}
			cancel()
		}
		read := make(chan string)
		go func() {
			text, _ := io.ReadAll(r)
			read <- string(text)
		}()
		deliver(t, s, stock)
		deliver(t, s, orders)
		deliver(t, s, batch("orders", 4, 4))
		w.Close()
		if got, want := <-read, lines(orders, stock, batch("orders", 4, 4)); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	})
}

func TestLargeBatchIsTakenInParts(t *testing.T) {
	t.Parallel()
	large := batch("orders", 1, 5)
	for i := range large {
		large[i].Subject = strings.Repeat("x", 300<<10)
	}
	if n, err := sinktest.Deliver(t.Context(), stdout.New(io.Discard), large); n == 0 || n > 4 || err != nil {
		t.Errorf("got %d, %v, want a part of about 1 MiB", n, err)
	}
}
