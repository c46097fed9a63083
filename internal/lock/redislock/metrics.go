package redislock

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"
)

// requests is a [redis.Hook] that counts what is sent to Redis, by how it ended.
type requests struct{ total *prometheus.CounterVec }

// codes are the ends of a request: the beginning of an answer that is an error, or what has
// kept the answer away.
var codes = []string{
	"ok", "timeout", "network", "error",
	"readonly", "noauth", "wrongpass", "noperm", "loading", "clusterdown", "masterdown", "moved", "ask", "tryagain", "oom", "busy", "noscript",
}

func newRequests(reg prometheus.Registerer) (requests, error) {
	total := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "observerd_locks_provider_requests_total",
		Help: "Requests to the servers of a lock provider by how they ended: ok, the code of an error, or why there was no answer.",
	}, []string{"provider", "code"})
	if reg == nil {
		return requests{total}, nil
	}
	err := reg.Register(total)
	if there, ok := errors.AsType[prometheus.AlreadyRegisteredError](err); ok {
		if same, ok := there.ExistingCollector.(*prometheus.CounterVec); ok {
			return requests{same}, nil
		}
	}
	return requests{total}, err
}

func codeOf(err error) string {
	var slow net.Error
	switch answer, is := errors.AsType[redis.Error](err); {
	case err == nil || errors.Is(err, redis.Nil):
		return "ok"
	case is:
		code, _, _ := strings.Cut(strings.ToLower(answer.Error()), " ")
		if slices.Contains(codes, code) {
			return code
		}
		return "error"
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, redis.ErrPoolTimeout), errors.As(err, &slow) && slow.Timeout():
		return "timeout"
	}
	return "network"
}

func (r requests) DialHook(next redis.DialHook) redis.DialHook { return next }

func (r requests) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		sent := cmd
		if name := cmd.Name(); name == "evalsha" || name == "eval" {
			sent = once{cmd}
		}
		err := next(ctx, sent)
		r.total.WithLabelValues("redis", codeOf(err)).Inc()
		return err
	}
}

// once keeps the client of a cluster, which has its own rules, from sending a script again
// that was not answered: of a release it would say that the lease was lost.
type once struct{ redis.Cmder }

// NoRetry implements [redis.Cmder].
func (o once) NoRetry() bool { return isUnknown(o.Err()) }

func (r requests) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		err := next(ctx, cmds)
		r.total.WithLabelValues("redis", codeOf(err)).Inc()
		return err
	}
}
