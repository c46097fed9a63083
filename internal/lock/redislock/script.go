package redislock

import (
	"context"
	_ "embed" // The scripts.
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/observerd/observerd/internal/fn"
)

var (
	//go:embed lua/prelude.lua
	prelude string
	//go:embed lua/acquire.lua
	acquireLua string
	//go:embed lua/renew.lua
	renewLua string
	//go:embed lua/release.lua
	releaseLua string
	//go:embed lua/steal.lua
	stealLua string
	//go:embed lua/find.lua
	findLua string

	acquireScript = redis.NewScript(prelude + acquireLua)
	renewScript   = redis.NewScript(prelude + renewLua)
	releaseScript = redis.NewScript(prelude + releaseLua)
	stealScript   = redis.NewScript(prelude + stealLua)
	findScript    = redis.NewScript(prelude + findLua)
)

// call is the use of a script.
type call struct {
	keys []string
	args []any
}

// awaited returns what ask does, or the error of ctx as soon as that ends: the client looks at
// its deadline alone. Close waits for what is asked for still.
func awaited[T any](ctx context.Context, p *Provider, ask func() (T, error)) (T, error) {
	type answer struct {
		value T
		err   error
	}
	got := make(chan answer, 1)
	p.asking.Go(func() {
		value, err := ask()
		got <- answer{value, err}
	})
	select {
	case a := <-got:
		return a.value, a.err
	case <-ctx.Done():
		var none T
		return none, context.Cause(ctx)
	}
}

// run runs a script once.
func (p *Provider) run(ctx context.Context, script *redis.Script, keys []string, args ...any) (any, error) {
	return awaited(ctx, p, func() (any, error) { return script.Run(ctx, p.client, keys, args...).Result() })
}

// runAll runs a script for each of the calls, in one round trip. A server that has forgotten
// the script is sent it. The error is that of ctx.
func (p *Provider) runAll(ctx context.Context, script *redis.Script, calls []call) ([]*redis.Cmd, error) {
	return awaited(ctx, p, func() ([]*redis.Cmd, error) { return runAll(ctx, p.client, script, calls), nil })
}

func runAll(ctx context.Context, client redis.UniversalClient, script *redis.Script, calls []call) []*redis.Cmd {
	send := func(run func(pipe redis.Pipeliner, c call) *redis.Cmd, which []int, into []*redis.Cmd) {
		pipe := client.Pipeline()
		for _, i := range which {
			into[i] = run(pipe, calls[i])
		}
		_, err := pipe.Exec(ctx)
		for _, i := range which { // Those for which there was no connection have no error of their own.
			if into[i].Err() == nil && into[i].Val() == nil {
				into[i].SetErr(err)
			}
		}
	}
	answers, all := make([]*redis.Cmd, len(calls)), fn.Indexes(len(calls))
	send(func(pipe redis.Pipeliner, c call) *redis.Cmd { return script.EvalSha(ctx, pipe, c.keys, c.args...) }, all, answers)
	var forgotten []int
	for i, a := range answers {
		if a.Err() != nil && strings.HasPrefix(a.Err().Error(), "NOSCRIPT") {
			forgotten = append(forgotten, i)
		}
	}
	if len(forgotten) > 0 {
		send(func(pipe redis.Pipeliner, c call) *redis.Cmd { return script.Eval(ctx, pipe, c.keys, c.args...) }, forgotten, answers)
	}
	return answers
}
