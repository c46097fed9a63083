package kafka

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/observerd/observerd/internal/config/field"
	"github.com/observerd/observerd/internal/fn"
)

const (
	// defaultLimit is that of a broker whose max.message.bytes cannot be asked for.
	defaultLimit = 1_000_012
	// The client takes no limits but these.
	leastLimit, mostLimit = 512, 1 << 26
)

// topics are those that are known to be there, with the bytes that a message of them has at
// most.
type topics struct {
	mu     sync.Mutex
	limits map[string]int
}

// limit is asked by the client, too.
func (t *topics) limit(topic string) int32 {
	t.mu.Lock()
	defer t.mu.Unlock()
	if limit, ok := t.limits[topic]; ok {
		return int32(limit) //nolint:gosec // It is clamped.
	}
	return defaultLimit
}

func (t *topics) set(topic string, limit int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.limits[topic] = min(max(limit, leastLimit), mostLimit)
}

func (t *topics) forget(topic string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.limits, topic)
}

func (t *topics) unknown(names []string) []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return fn.Only(names, func(name string) bool {
		_, ok := t.limits[name]
		return !ok
	})
}

// legal is what Kafka takes as the name of a topic.
var legal = regexp.MustCompile(`^[a-zA-Z0-9._-]{1,249}$`)

// topicOf returns the topic of a stream. The error is a mistake in the configuration.
func topicOf(topic field.Template, positions, stream string) (string, error) {
	name, err := topic.Execute(struct{ Stream string }{stream})
	switch {
	case err != nil:
		return "", fmt.Errorf("topic cannot be made for the stream %s: %w; it knows {{.Stream}} alone", stream, err)
	case !legal.MatchString(name) || strings.Trim(name, ".") == "":
		return "", fmt.Errorf("topic makes %q of the stream %s, which is not a valid name of a topic; use letters, digits, . _ and -, at most 249", name, stream)
	case name == positions:
		return "", fmt.Errorf("topic makes %s of the stream %s, which is the topic of positions; name another in topic or positions-topic", name, stream)
	}
	return name, nil
}

// positionsConfig has the topic of positions kept small: all of it is read once a minute.
var positionsConfig = map[string]*string{
	"cleanup.policy": kadm.StringPtr("compact"), "segment.bytes": kadm.StringPtr("4194304"),
	"segment.ms": kadm.StringPtr("3600000"), "min.cleanable.dirty.ratio": kadm.StringPtr("0.1"),
}

// describe asks for topics, and what the user may do with them.
func describe(ctx context.Context, client *kgo.Client, names ...string) ([]kmsg.MetadataResponseTopic, error) {
	req := kmsg.NewPtrMetadataRequest()
	req.IncludeTopicAuthorizedOperations = true
	for _, name := range names {
		topic := kmsg.NewMetadataRequestTopic()
		topic.Topic = kmsg.StringPtr(name)
		req.Topics = append(req.Topics, topic)
	}
	resp, err := req.RequestWith(ctx, client)
	if err != nil {
		return nil, err
	}
	return resp.Topics, nil
}

// ensure makes the topics that are missing, if it may, and learns their limits.
func (s *Sink) ensure(ctx context.Context, names ...string) error {
	names = s.topics.unknown(names)
	if len(names) == 0 {
		return nil
	}
	found, err := describe(ctx, s.client, names...)
	if err != nil {
		return err
	}
	var missing []string
	for _, topic := range found {
		switch err := kerr.ErrorForCode(topic.ErrorCode); {
		case errors.Is(err, kerr.UnknownTopicOrPartition) && s.opts.Create:
			missing = append(missing, *topic.Topic)
		case err != nil:
			return fmt.Errorf("topic %s: %w", *topic.Topic, err)
		}
	}
	if err := s.create(ctx, missing); err != nil {
		return err
	}
	configs, err := kadm.NewClient(s.client).DescribeTopicConfigs(ctx, names...)
	if auth := (*kadm.AuthError)(nil); err != nil && !errors.As(err, &auth) {
		return err
	}
	for _, name := range names {
		config := configOf(configs, name)
		if problem := mistaken(name == s.opts.Positions, config["cleanup.policy"]); problem != "" {
			return fmt.Errorf("topic %s %s", name, problem)
		}
		limit, err := strconv.Atoi(config["max.message.bytes"])
		if err != nil {
			limit = defaultLimit
		}
		s.topics.set(name, limit)
	}
	return nil
}

func (s *Sink) create(ctx context.Context, names []string) error {
	create := func(partitions int32, config map[string]*string, names ...string) error {
		made, err := kadm.NewClient(s.client).CreateTopics(ctx, partitions, s.opts.Replication, config, names...)
		for _, r := range made {
			if r.Err != nil && !errors.Is(r.Err, kerr.TopicAlreadyExists) {
				return fmt.Errorf("create the topic %s: %w", r.Topic, r.Err)
			}
		}
		return err
	}
	var err error
	if at := slices.Index(names, s.opts.Positions); at >= 0 {
		names, err = slices.Delete(names, at, at+1), create(1, positionsConfig, s.opts.Positions)
	}
	if len(names) > 0 && err == nil {
		err = create(s.opts.Partitions, nil, names...)
	}
	return err
}

func configOf(configs kadm.ResourceConfigs, name string) map[string]string {
	values := make(map[string]string)
	found, _ := configs.On(name, nil)
	for _, c := range found.Configs {
		values[c.Key] = c.MaybeValue()
	}
	return values
}

// mistaken says what is wrong with how a topic is cleaned; "" is not known.
func mistaken(positions bool, policy string) string {
	if positions && policy != "" && policy != "compact" {
		return "loses positions (cleanup.policy " + policy + "); set cleanup.policy=compact for it"
	}
	return ""
}
