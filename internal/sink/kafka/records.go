package kafka

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/twmb/franz-go/pkg/kbin"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/observerd/observerd/internal/events"
	"github.com/observerd/observerd/internal/sink"
)

// topicsOf returns the topic of each stream of a batch. They are there.
func (s *Sink) topicsOf(ctx context.Context, batch []events.Event) (topic map[string]string, err error) {
	topic = make(map[string]string)
	for i := range batch {
		stream := batch[i].Stream
		if topic[stream] != "" {
			continue
		}
		if topic[stream], err = topicOf(s.opts.Topic, s.opts.Positions, stream); err != nil {
			return nil, err
		}
	}
	return topic, s.ensure(ctx, slices.Compact(slices.Sorted(maps.Values(topic)))...)
}

// fitting returns the events of a batch that Kafka takes, with their records, and the first of each
// stream that it does not take.
func (s *Sink) fitting(batch []events.Event, topic map[string]string) (taken []events.Event, records []*kgo.Record, rejected []sink.Rejection) {
	stops := make(map[string]bool)
	for i := range batch {
		e := &batch[i]
		if stops[e.Stream] {
			continue
		}
		r := record(e, topic[e.Stream], s.opts.Structured)
		if size, limit := sizeOf(r), int(s.topics.limit(r.Topic)); size > limit {
			stops[e.Stream] = true
			rejected = append(rejected, sink.Rejection{
				Position: events.Position{Stream: e.Stream, Seq: e.Seq, ID: e.ID},
				Reason:   fmt.Sprintf("it is a message of %d bytes, and topic %s takes %d; raise its max.message.bytes", size, r.Topic, limit),
			})
			continue
		}
		taken, records = append(taken, *e), append(records, r)
	}
	return taken, records, rejected
}

// outgrown fails with [sink.ErrExpired] if the limit of a topic has risen that has refused an
// event. The client keeps the former one for as long as it is open.
func (s *Sink) outgrown(ctx context.Context, rejected []sink.Rejection, topic map[string]string) error {
	for _, x := range rejected {
		name := topic[x.Stream]
		limit := s.topics.limit(name)
		s.topics.forget(name)
		if err := s.ensure(ctx, name); err != nil {
			return err
		}
		if now := s.topics.limit(name); now > limit && now != defaultLimit { // Which may be for want of an answer.
			return fmt.Errorf("the max.message.bytes of topic %s has risen: %w", name, sink.ErrExpired)
		}
	}
	return nil
}

// record is an event as the Kafka binding of CloudEvents 1.0 has it. Key and value are never
// null: a record without a key has no order, one without a value is a tombstone.
func record(e *events.Event, topic string, structured bool) *kgo.Record {
	r := &kgo.Record{Topic: topic, Key: []byte(e.Subject)}
	if structured {
		r.Value = events.AppendJSON(nil, e)
		r.Headers = []kgo.RecordHeader{{Key: "content-type", Value: []byte("application/cloudevents+json; charset=UTF-8")}}
		return r
	}
	r.Value = e.Data
	if r.Value == nil {
		r.Value = []byte{}
	}
	values, contentType := events.Binary(e)
	r.Headers = make([]kgo.RecordHeader, 0, len(values)+1)
	for i, value := range values {
		if len(value) > 0 {
			r.Headers = append(r.Headers, kgo.RecordHeader{Key: headers[i], Value: value})
		}
	}
	if contentType != "" {
		r.Headers = append(r.Headers, kgo.RecordHeader{Key: "content-type", Value: []byte(contentType)})
	}
	return r
}

// headers are the names of [events.Attributes].
var headers = func() (names [len(events.Attributes)]string) {
	for i, name := range events.Attributes {
		names[i] = "ce_" + name
	}
	return names
}()

// batchOverhead is what the client adds to a record that is alone in its batch.
const batchOverhead = 65

// sizeOf is what the client compares with a topic's limit: the size before compression.
func sizeOf(r *kgo.Record) int {
	field := func(length int) int { return kbin.VarintLen(int32(length)) + length } //nolint:gosec // It fits into memory.
	size := 3 + field(len(r.Key)) + field(len(r.Value)) + kbin.VarintLen(int32(len(r.Headers)))
	for _, h := range r.Headers {
		size += field(len(h.Key)) + field(len(h.Value))
	}
	return batchOverhead + field(size)
}

// format is that of a position, in its record.
const format = 1

// position is the value of a record of the topic of positions. Its key is SINK/STREAM; that
// of the mark of a term is SINK.
type position struct {
	Format int       `json:"format"`
	Log    uuid.UUID `json:"log"`
	Epoch  int64     `json:"epoch"`
	Seq    int64     `json:"seq,omitempty"`
	ID     uuid.UUID `json:"id,omitzero"`
	Digest uuid.UUID `json:"digest,omitzero"`
}

func (s *Sink) positionRecord(p events.Position) *kgo.Record {
	key := s.opts.Sink
	if p.Stream != "" {
		key += "/" + p.Stream
	}
	value, _ := json.Marshal(position{format, p.Log, s.term.Epoch, p.Seq, p.ID, p.Digest}) // Nothing in it can fail.
	return &kgo.Record{Topic: s.opts.Positions, Key: []byte(key), Value: value}
}

// Positions implements [sink.Resumer]. Within a term nobody else writes them, but brokers may
// lose some, so those that were read are believed for a time alone.
func (s *Sink) Positions(ctx context.Context, streams []string) (found []events.Position, _ error) {
	if time.Since(s.readAt) > believed {
		began := time.Now()
		last, err := s.read(ctx)
		if err != nil {
			return nil, err
		}
		s.held, s.odd, s.readAt = make(map[string]events.Position), make(map[string]error), began
		for stream, r := range last {
			p, err := decode(stream, r)
			switch {
			case err != nil:
				s.odd[stream] = err
			case r.Value != nil: // Else a tombstone.
				s.held[stream] = p
			}
		}
	}
	for _, stream := range streams {
		if err := s.odd[stream]; err != nil {
			return nil, err
		}
		if p, ok := s.held[stream]; ok {
			found = append(found, p)
		}
	}
	return found, nil
}

// read writes the mark of this term, and reads until it finds it. It returns the last record of
// each stream.
func (s *Sink) read(ctx context.Context) (last map[string]*kgo.Record, _ error) {
	mark := s.positionRecord(events.Position{Log: s.term.Log})
	if err := s.transact(ctx, func(produce func(*kgo.Record)) { produce(mark) }); err != nil {
		return nil, err
	}
	client, err := s.opts.client(kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.WithHooks(&s.dials),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{s.opts.Positions: {0: kgo.NewOffset().AtStart()}}))
	if err != nil {
		return nil, err
	}
	defer client.Close()
	last = make(map[string]*kgo.Record)
	for {
		fetched := client.PollFetches(ctx)
		if err := fetched.Err(); err != nil {
			return nil, s.explained(ctx, "read the topic "+s.opts.Positions+", up to what other sinks have open transactions in,", err)
		}
		for _, r := range fetched.Records() {
			if stream, isOurs := strings.CutPrefix(string(r.Key), s.opts.Sink+"/"); isOurs {
				last[stream] = r
			}
			if r.Offset >= mark.Offset {
				return last, nil
			}
		}
	}
}

func decode(stream string, r *kgo.Record) (events.Position, error) {
	var p position
	if err := json.Unmarshal(r.Value, &p); r.Value != nil && (err != nil || p.Format != format) {
		return events.Position{}, fmt.Errorf("topic %s, offset %d: the position of the stream %s is none that this version reads; upgrade observerd, or write a record without a value under its key, "+
			"which halts the stream until 'observerd sinks adopt'", r.Topic, r.Offset, stream)
	}
	return events.Position{Stream: stream, Log: p.Log, Seq: p.Seq, ID: p.ID, Digest: p.Digest}, nil
}
