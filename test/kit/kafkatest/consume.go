package kafkatest

import (
	"context"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/observerd/observerd/internal/events"
)

// Consume returns what a reader of committed records finds in a topic, partition by partition.
// It waits for open transactions.
func Consume(ctx context.Context, brokers []string, topic string) (records []*kgo.Record, err error) {
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.ConsumeTopics(topic), kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords())
	if err != nil {
		return nil, err
	}
	defer client.Close()
	listed, err := kadm.NewClient(client).ListEndOffsets(ctx, topic)
	if err != nil {
		return nil, err
	}
	ends := make(map[int32]int64) // Each behind the mark of a transaction that has ended, or will.
	listed.Each(func(o kadm.ListedOffset) {
		if o.Offset > 0 {
			ends[o.Partition] = o.Offset
		}
	})
	for len(ends) > 0 {
		fetched := client.PollFetches(ctx)
		if err := fetched.Err(); err != nil {
			return nil, err
		}
		for _, r := range fetched.Records() {
			if !r.Attrs.IsControl() {
				records = append(records, r)
			}
			if r.Offset >= ends[r.Partition]-1 {
				delete(ends, r.Partition)
			}
		}
	}
	return records, nil
}

// Decode reads an event in the binary mode of the Kafka binding, or the structured one.
func Decode(r *kgo.Record) (events.Event, error) {
	header := make(map[string]string)
	for _, h := range r.Headers {
		header[h.Key] = string(h.Value)
	}
	if strings.HasPrefix(header["content-type"], "application/cloudevents+json") {
		return events.Decode(r.Value)
	}
	version, err := strconv.ParseInt(header["ce_rowversion"], 10, 64)
	if err != nil {
		return events.Event{}, err
	}
	text := map[string]any{"rowversion": version}
	for key, value := range header {
		if name, ok := strings.CutPrefix(key, "ce_"); ok && name != "rowversion" {
			text[name] = value
		}
	}
	text["snapshot"] = header["ce_snapshot"] == "true"
	bare, err := json.Marshal(text)
	if err != nil {
		return events.Event{}, err
	}
	e, err := events.Decode(bare)
	if len(r.Value) > 0 {
		e.Data = r.Value
	}
	if isJSON := header["content-type"] == "application/json"; err == nil && isJSON != json.Valid(e.Data) {
		err = errors.New("the content type is not that of the data")
	}
	return e, err
}

//go:embed Reader.java
var reader []byte

// Read returns what Kafka's own client finds committed in a topic, as [Consume].
func (s *Server) Read(ctx context.Context, topic string) (records []*kgo.Record, err error) {
	source := filepath.Join(s.Dir.Data(), "Reader.java")
	if err := errors.Join(os.WriteFile(source, reader, 0o600), s.Who.Own(source)); err != nil {
		return nil, err
	}
	output, err := s.run(ctx, source, s.Address(), topic).Output()
	if err != nil {
		return nil, fmt.Errorf("run Reader.java: %w", err)
	}
	for line := range strings.Lines(string(output)) {
		r, err := readLine(strings.Fields(line))
		if err != nil {
			return nil, fmt.Errorf("a line of Reader.java: %w", err)
		}
		r.Topic = topic
		records = append(records, r)
	}
	return records, nil
}

func readLine(fields []string) (*kgo.Record, error) {
	if len(fields) < 3 {
		return nil, errors.New("it has no three fields")
	}
	partition, err := strconv.ParseInt(fields[0], 10, 32)
	bytes := func(text string) []byte {
		plain, isThere := strings.CutPrefix(text, "=")
		if !isThere {
			return nil
		}
		decoded, wrong := base64.StdEncoding.DecodeString(plain)
		err = errors.Join(err, wrong)
		return decoded
	}
	r := &kgo.Record{Partition: int32(partition), Key: bytes(fields[1]), Value: bytes(fields[2])}
	for _, field := range fields[3:] {
		key, value, _ := strings.Cut(field, ":")
		r.Headers = append(r.Headers, kgo.RecordHeader{Key: key, Value: bytes(value)})
	}
	return r, err
}
