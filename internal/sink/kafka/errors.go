package kafka

import (
	"errors"
	"fmt"
	"io"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/observerd/observerd/internal/sink"
)

// advice says what to do, by the broker's answer.
var advice = map[error]string{
	kerr.UnknownTopicOrPartition:            "create the topic, or set create: true",
	kerr.UnknownTopicID:                     "the topic was deleted; create it, or set create: true",
	kerr.TopicAuthorizationFailed:           "allow the user DESCRIBE and WRITE of it, READ too of positions-topic, and CREATE if it is missing",
	kerr.ClusterAuthorizationFailed:         "allow the user CREATE of the topics, or create them and set create: false",
	kerr.TransactionalIDAuthorizationFailed: "allow the user DESCRIBE and WRITE of the transactional id observerd-SINK, SINK being the id of the sink",
	kerr.NotEnoughReplicas:                  "fewer replicas are in sync than min.insync.replicas; check the brokers",
	kerr.NotEnoughReplicasAfterAppend:       "fewer replicas are in sync than min.insync.replicas; check the brokers",
	kerr.InvalidReplicationFactor:           "there are not as many brokers; set replication",
	kerr.PolicyViolation:                    "a policy of the brokers forbids it; if it is a topic to be made, create it, and set create: false",
	kerr.InvalidTransactionTimeout:          "raise transaction.max.timeout.ms of the brokers to 60000",
	kerr.MessageTooLarge:                    "its max.message.bytes was changed, or allow the user DESCRIBE_CONFIGS of the topic, so that batches fit",
	kerr.SaslAuthenticationFailed:           "the user or the password is wrong; check sasl",
	kerr.UnsupportedSaslMechanism:           "the brokers do not support this mechanism; check sasl.mechanism",
	kerr.CoordinatorNotAvailable:            "the brokers cannot store transactions now; check them and transaction.state.log.replication.factor",
}

// explained words an error of Kafka. None holds a value of a row.
func explained(what string, err error) error {
	if isFenced(err) {
		return &fencedError{fmt.Errorf("%s: %w; another producer has this transactional id now; if this repeats, another installation has a sink of this id: rename one", what, err)}
	}
	if errors.Is(err, kerr.InvalidProducerIDMapping) {
		return fmt.Errorf("%s: %w; %w: the transactional id has expired, or its state was lost", what, err, sink.ErrExpired)
	}
	if code, is := errors.AsType[*kerr.Error](err); is && advice[code] != "" {
		return fmt.Errorf("%s: %w; %s", what, err, advice[code])
	}
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("%s: %w; a broker closes the connection like this when it requires TLS, a user or another password: check security and sasl", what, err)
	}
	return fmt.Errorf("%s: %w", what, err)
}

// isFenced reports whether a later producer has taken the place of this one.
func isFenced(err error) bool {
	return errors.Is(err, kerr.ProducerFenced) || errors.Is(err, kerr.InvalidProducerEpoch)
}

// fencedError is a [sink.StaleError] of a later term whose epoch Kafka does not tell.
type fencedError struct{ err error }

func (e *fencedError) Error() string   { return e.err.Error() }
func (e *fencedError) Unwrap() []error { return []error{e.err, &sink.StaleError{}} }
