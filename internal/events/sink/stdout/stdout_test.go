package stdout_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/observerd/observerd/internal/events"
	"github.com/observerd/observerd/internal/events/sink/stdout"
	"github.com/observerd/observerd/test/kit/waittest"
)

func TestMain(m *testing.M) { waittest.VerifyNoLeaks(m) }

func batch(stream string, from, to int64) (batch []events.Event) {
	for seq := from; seq <= to; seq++ {
		batch = append(batch, events.Event{
			ID: events.NewID(stream, 0, "key", seq, nil), Stream: stream, Seq: seq, Type: events.TypeNewOrder,
		})
	}
	return batch
}

func lines(batches ...[]events.Event) string {
	var text []byte
	for _, batch := range batches {
		for i := range batch {
			text = append(events.AppendJSON(text, &batch[i]), '\n')
		}
	}
	return string(text)
}

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
		n, err := s.Deliver(t.Context(), batch)
		if n == 0 || err != nil {
			t.Fatalf("stored %d of %d: %v", n, len(batch), err)
		}
		batch = batch[n:]
	}
}

func TestDeliver(t *testing.T) {
	t.Parallel()
	w := &writer{}
	s := stdout.New(w)
	deliver(t, s, batch("orders", 1, 100))
	deliver(t, s, batch("stock", 1, 3))
	if want := lines(batch("orders", 1, 100), batch("stock", 1, 3)); w.String() != want {
		t.Errorf("got %s", w.String())
	}
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
			stored, got := s.Deliver(t.Context(), three)
			if whole := strings.Count(all[:limit], "\n"); stored != whole || got == nil {
				t.Fatalf("cut at %d: stored %d, want %d; error %v", limit, stored, whole, got)
			}
			deliver(t, s, three[stored:])
			if w.String() != all {
				t.Fatalf("cut at %d, then repeated: %q", limit, w.String())
			}

			w = &writer{limits: []int{limit}, err: err}
			s = stdout.New(w)
			stored, _ = s.Deliver(t.Context(), three)
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

// TestSeveralShortWrites goes on with a line again and again.
func TestSeveralShortWrites(t *testing.T) {
	t.Parallel()
	one := batch("orders", 1, 1)
	w := &writer{limits: []int{10, 0, 20, 1}, err: syscall.EAGAIN}
	s := stdout.New(w)
	for range 4 {
		if n, err := s.Deliver(t.Context(), one); n != 0 || !errors.Is(err, syscall.EAGAIN) {
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
	n, err := stdout.New(w).Deliver(t.Context(), batch("orders", 1, 1))
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
			if n, err := s.Deliver(ctx, b); n != 0 || !errors.Is(err, context.DeadlineExceeded) {
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
	w := &writer{}
	s := stdout.New(w)
	large := batch("orders", 1, 10)
	for i := range large {
		large[i].Subject = strings.Repeat("x", 300<<10)
	}
	want := lines(large)
	for len(large) > 0 {
		n, err := s.Deliver(t.Context(), large)
		if n == 0 || n > 4 || err != nil {
			t.Fatalf("got %d, %v, want parts of about 1 MiB", n, err)
		}
		large = large[n:]
	}
	if w.String() != want {
		t.Error("the text differs")
	}
}

func TestEmptyBatch(t *testing.T) {
	t.Parallel()
	w := &writer{}
	if n, err := stdout.New(w).Deliver(t.Context(), nil); n != 0 || err != nil || w.calls != 0 {
		t.Errorf("got %d, %v after %d writes", n, err, w.calls)
	}
}

func TestDeliverAfterTheEnd(t *testing.T) {
	t.Parallel()
	w := &writer{}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if n, err := stdout.New(w).Deliver(ctx, batch("orders", 1, 1)); n != 0 || err == nil || w.Len() > 0 {
		t.Errorf("got %d, %v, and %q was written", n, err, w.String())
	}
}
