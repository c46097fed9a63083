package sinktest

import (
	"bytes"
	"errors"
	"sync"
	"syscall"

	"github.com/observerd/observerd/internal/events"
)

// Batch returns events of one stream, with the sequences from and to and those between.
func Batch(stream string, from, to int64) (batch []events.Event) {
	for seq := from; seq <= to; seq++ {
		batch = append(batch, events.Event{
			ID: events.NewID(stream, 0, "key", seq, nil), Stream: stream, Seq: seq, Type: events.TypeNewOrder,
			Data: []byte(`{"order_id":"ORD-1","note":"a \"b\" ü"}`),
		})
	}
	return batch
}

// Lines returns the text of the events as JSON lines.
func Lines(batches ...[]events.Event) string {
	var text []byte
	for _, batch := range batches {
		for i := range batch {
			text = append(events.AppendJSON(text, &batch[i]), '\n')
		}
	}
	return string(text)
}

// Read returns the events of JSON lines, as a reader finds them who skips anything
// that is no whole line of an event.
func Read(text []byte) (found []events.Event, err error) {
	for line := range bytes.Lines(text) {
		if !bytes.HasSuffix(line, []byte("\n")) {
			break
		}
		e, err := events.Decode(line)
		if errors.Is(err, events.ErrNotEvent) {
			continue
		}
		if err != nil {
			return nil, err
		}
		found = append(found, e)
	}
	return found, nil
}

// Faults stands between a sink and the stream of bytes that it writes to. Its methods
// are those that a [Harness] asks for.
type Faults struct {
	mu            sync.Mutex
	torn, refused bool
	stalled       chan struct{}
}

// Write calls write, or fails in its place.
func (f *Faults) Write(text []byte, write func([]byte) (int, error)) (int, error) {
	f.mu.Lock()
	torn, refused, stalled := f.torn, f.refused, f.stalled
	f.torn = false
	f.mu.Unlock()
	if stalled != nil {
		<-stalled
	}
	switch {
	case refused:
		return 0, syscall.ENOSPC
	case torn:
		n, err := write(text[:len(text)/2])
		return n, errors.Join(err, syscall.ENOSPC)
	}
	return write(text)
}

// Tear is [Harness].Tear: the next write takes half of its bytes.
func (f *Faults) Tear() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.torn = true
}

// Refuse is [Harness].Refuse.
func (f *Faults) Refuse() (allow func()) {
	set := func(refused bool) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.refused = refused
	}
	set(true)
	return func() { set(false) }
}

// Stall is [Harness].Stall, for a sink whose writes may outlast Deliver.
func (f *Faults) Stall() (resume func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	stalled := make(chan struct{})
	f.stalled = stalled
	return sync.OnceFunc(func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.stalled = nil
		close(stalled)
	})
}
