package kafka

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"github.com/observerd/observerd/internal/config/field"
	"github.com/observerd/observerd/internal/config/kind"
	"github.com/observerd/observerd/internal/sink"
)

// Kind is the kind of sink that is of type kafka in the configuration.
var Kind = kind.Kind[sink.Settings]{Name: "kafka", Settings: func() sink.Settings { return new(settings) }}

type settings struct {
	// Brokers are HOST:PORT of some brokers, which know the others. Required.
	Brokers []string `key:"brokers" shown:"required for kafka" required:"true" unit:"addresses"`
	// Topic is that of a stream, in which {{.Stream}} may stand. Required.
	Topic field.Template `key:"topic" shown:"required for kafka" required:"true" unit:"template"`
	// PositionsTopic is where the sink keeps what it has stored last. Default:
	// observerd-positions.
	PositionsTopic string `key:"positions-topic" default:"observerd-positions" unit:"name"`
	// Create makes topics that are missing. Default: false.
	Create bool `key:"create" default:"false"`
	// Partitions are those of topics that are made. Default: 1.
	Partitions int `key:"partitions" default:"1" min:"1" max:"10000" unit:"partitions"`
	// Replication is how many replicas topics have that are made; -1 is the brokers' default.
	// Default: -1.
	Replication int `key:"replication" default:"-1" min:"-1" max:"100" unit:"replicas"`
	// Compression of batches. Default: zstd, the smallest; every broker that has the
	// transactions has it.
	Compression string `key:"compression" default:"zstd" oneof:"none|gzip|snappy|lz4|zstd"`
	// Format is binary for attributes in headers and data as the value, structured for one
	// JSON object. Default: binary.
	Format string `key:"format" default:"binary" oneof:"binary|structured"`
	// Security is how brokers are spoken to. Default: plaintext.
	Security string `key:"security" default:"plaintext" oneof:"plaintext|tls"`
	// TLS is for security: tls.
	TLS field.TLS `key:"tls"`
	// SASL is for brokers that want a user.
	SASL saslSettings `key:"sasl"`
}

type saslSettings struct {
	// Mechanism is that of the user. Default: none.
	Mechanism string `key:"mechanism" oneof:"plain|scram-sha-256|scram-sha-512"`
	// User and Password are those of this client. Default: none.
	User         string       `key:"user" unit:"name"`
	Password     field.Secret `key:"password"`
	PasswordFile string       `key:"password-file" unit:"file name"`
}

func (s saslSettings) client() sasl.Mechanism {
	switch user, password := s.User, s.Password.Reveal(); s.Mechanism {
	case "plain":
		return plain.Auth{User: user, Pass: password}.AsMechanism()
	case "scram-sha-256":
		return scram.Auth{User: user, Pass: password}.AsSha256Mechanism()
	case "scram-sha-512":
		return scram.Auth{User: user, Pass: password}.AsSha512Mechanism()
	}
	return nil
}

// Target is the topic: two sinks would store each event of a stream twice there.
func (s *settings) Target() (key, place string) {
	return "topic", fmt.Sprint("kafka ", slices.Sorted(slices.Values(s.Brokers)), " ", s.Topic)
}

func (s *settings) Check(r field.Report) {
	for _, broker := range s.Brokers {
		if _, _, err := net.SplitHostPort(broker); err != nil {
			r.Reject("brokers", fmt.Sprintf("%q is not HOST:PORT; Kafka listens on 9092 by default", broker))
			break
		}
	}
	if !legal.MatchString(s.PositionsTopic) || strings.Trim(s.PositionsTopic, ".") == "" {
		r.Reject("positions-topic", "this is not a valid name of a topic; use letters, digits, . _ and -, at most 249")
	} else if _, err := topicOf(s.Topic, s.PositionsTopic, "orders"); err != nil {
		r.Reject("topic", err.Error())
	}
	if s.Replication == 0 {
		r.Reject("replication", "a topic has at least one replica; use -1 for the brokers' default")
	}
	if s.Security != "tls" && s.TLS != (field.TLS{}) {
		r.Reject("tls", "it is not used with security: plaintext; set security: tls")
	}
	switch named := s.SASL.User != "" && s.SASL.Password.Reveal() != ""; {
	case s.SASL.Mechanism == "" && (s.SASL.User != "" || s.SASL.Password.Reveal() != ""):
		r.Reject("sasl.mechanism", "there is a user, and no mechanism; use scram-sha-512, scram-sha-256 or plain, as the brokers do")
	case s.SASL.Mechanism != "" && !named:
		r.Reject("sasl.user", "a mechanism needs user, and password or password-file")
	case s.SASL.Mechanism == "plain" && s.Security != "tls":
		r.Warn("security", "plain sends the password in the clear; set security: tls, or take scram-sha-512")
	}
}

// Batch is large because a transaction costs as much as thousands of events.
func (*settings) Batch() int { return 5000 }

func (s *settings) options(id string) (Options, error) {
	o := Options{
		Sink:        id,
		Brokers:     s.Brokers,
		Topic:       s.Topic,
		Positions:   s.PositionsTopic,
		Create:      s.Create,
		Partitions:  int32(s.Partitions),  //nolint:gosec // The tag has its limits.
		Replication: int16(s.Replication), //nolint:gosec // The tag has its limits.
		Compression: s.Compression,
		Structured:  s.Format == "structured",
		SASL:        s.SASL.client(),
	}
	if s.Security == "tls" {
		config, err := s.TLS.Config()
		if err != nil {
			return Options{}, err
		}
		o.TLS = config
	}
	return o, nil
}

// Opener implements [sink.Settings]. Files of TLS are read for each term.
func (s *settings) Opener(o sink.Options) func(context.Context, sink.Term) (sink.Sink, error) {
	return func(ctx context.Context, t sink.Term) (sink.Sink, error) {
		opts, err := s.options(o.Sink)
		if err != nil {
			return nil, err
		}
		return Open(ctx, opts, t)
	}
}
