package kafka

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/observerd/observerd/internal/config/kind"
)

// Probe asks whether the brokers answer, and what topics and rights are there.
func (s *settings) Probe(ctx context.Context) []kind.Finding {
	o, err := s.options("")
	if err != nil {
		return []kind.Finding{{Err: err}}
	}
	client, err := o.client()
	if err != nil {
		return []kind.Finding{{Err: err}}
	}
	defer client.Close()
	if err := client.Ping(ctx); err != nil {
		return []kind.Finding{{Err: explained(fmt.Sprint("no broker of ", s.Brokers, " answers"), err)}}
	}
	p := probe{o: o, client: client, admin: kadm.NewClient(client)}
	p.topic(ctx, o.Positions, kadm.OpWrite, kadm.OpRead)
	// A topic of each stream cannot be asked for: the streams are not known here.
	one, _ := topicOf(o.Topic, o.Positions, "one")
	if other, err := topicOf(o.Topic, o.Positions, "other"); err == nil && one == other {
		p.topic(ctx, one, kadm.OpWrite)
	}
	return p.findings
}

type probe struct {
	o        Options
	client   *kgo.Client
	admin    *kadm.Client
	findings []kind.Finding
}

func (p *probe) add(warning bool, format string, args ...any) {
	p.findings = append(p.findings, kind.Finding{Warning: warning, Err: fmt.Errorf(format, args...)})
}

func (p *probe) topic(ctx context.Context, name string, rights ...kadm.ACLOperation) {
	found, err := describe(ctx, p.client, name)
	if err != nil || len(found) != 1 {
		p.add(false, "topic %s cannot be asked for: %w", name, err)
		return
	}
	topic := found[0]
	switch err := kerr.ErrorForCode(topic.ErrorCode); {
	case errors.Is(err, kerr.UnknownTopicOrPartition) && p.o.Create:
		p.creatable(ctx, name)
		return
	case err != nil:
		p.findings = append(p.findings, kind.Finding{Err: explained("topic "+name, err)})
		return
	}
	allowed := kadm.DecodeACLOperations(topic.AuthorizedOperations)
	for _, right := range rights {
		if len(allowed) > 0 && !slices.Contains(allowed, right) {
			p.add(false, "the user has no right to %s of topic %s; allow it by an ACL", right, name)
		}
	}
	if len(topic.Partitions) > 0 && len(topic.Partitions[0].Replicas) == 1 {
		p.add(true, "topic %s has one replica: what a broker loses is lost; set three", name)
	}
	p.config(ctx, name)
}

// creatable has the brokers check a topic without making it.
func (p *probe) creatable(ctx context.Context, name string) {
	made, err := p.admin.ValidateCreateTopics(ctx, p.o.Partitions, p.o.Replication, nil, name)
	if err == nil {
		err = made[name].Err
	}
	if err != nil {
		p.findings = append(p.findings, kind.Finding{Err: explained("topic "+name+" is missing, and cannot be created", err)})
	}
}

func (p *probe) config(ctx context.Context, name string) {
	configs, err := p.admin.DescribeTopicConfigs(ctx, name)
	config := configOf(configs, name)
	if err != nil || len(config) == 0 {
		p.add(true, "the settings of topic %s cannot be seen; allow the user DESCRIBE_CONFIGS of it, else events above %d bytes are rejected", name, defaultLimit)
		return
	}
	isPositions := name == p.o.Positions
	if problem := mistaken(isPositions, config["cleanup.policy"]); problem != "" {
		p.add(false, "topic %s %s", name, problem)
	}
	if !isPositions && config["cleanup.policy"] != "delete" {
		p.add(true, "topic %s is compacted: who reads it late finds the last event of a key alone; set cleanup.policy=delete for it", name)
	}
	if config["min.insync.replicas"] == "1" {
		p.add(true, "topic %s stores what one replica has (min.insync.replicas 1): what a broker loses is lost; set 2 of 3 replicas", name)
	}
	if config["unclean.leader.election.enable"] == "true" {
		p.add(true, "topic %s elects leaders that lack events (unclean.leader.election.enable); set false", name)
	}
	if limit, err := strconv.Atoi(config["max.message.bytes"]); err == nil && limit < defaultLimit && !isPositions {
		p.add(true, "topic %s takes no message above %d bytes: a larger event is rejected; raise its max.message.bytes", name, limit)
	}
}
