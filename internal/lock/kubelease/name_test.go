package kubelease_test

import (
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/observerd/observerd/internal/lock"
	"github.com/observerd/observerd/internal/lock/kubelease"
)

func TestNames(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		options     kubelease.Options
		region, key string
		want        string
	}{
		{kubelease.Options{}, "orders", "order:4711", `^observerd-lock-order-4711-[0-9a-f]{16}$`},
		{kubelease.Options{}, "orders", "Node:Worker/1_Ä", `^observerd-lock-node-worker-1-[0-9a-f]{16}$`},
		{kubelease.Options{}, "orders", "ÄÖ", `^observerd-lock-[0-9a-f]{16}$`},
		{kubelease.Options{}, "orders", strings.Repeat("long:", 100), `^observerd-lock-(long-){5}long-l-[0-9a-f]{16}$`},
		{kubelease.Options{Prefix: strings.Repeat("a", 40)}, "orders", strings.Repeat("b", 400), `^a{40}b{6}-[0-9a-f]{16}$`},
		{kubelease.Options{Names: kubelease.Plain}, "orders", "Node:worker-1", `^node-worker-1$`},
		{kubelease.Options{Names: kubelease.Plain, Prefix: "shop-"}, "orders", "name:Node/worker-1.example", `^shop-node-worker-1.example$`},
		// printf Node/worker-1 | sha256sum
		{kubelease.Options{Names: kubelease.SHA256}, "orders", "Node:worker-1", `^94e99fa683de6e08$`},
	} {
		got, err := c.options.NameOf(c.region, c.key)
		if err != nil || !regexp.MustCompile(c.want).MatchString(got) || len(got) > 63 {
			t.Errorf("%+v: %s is named %q, %v, want %s", c.options, c.key, got, err, c.want)
		}
	}
	names := make(map[string]bool)
	for _, at := range [][2]string{{"a", "b"}, {"a", "B"}, {"a", "b:"}, {"ab", ""}, {"b", "b"}} {
		name, err := kubelease.Options{}.NameOf(at[0], at[1])
		if err != nil || names[name] {
			t.Errorf("%q is named %q, %v, as another", at, name, err)
		}
		names[name] = true
	}
	for _, key := range []string{"name:", "name:-", "name:" + strings.Repeat("a", 254)} {
		if name, err := (kubelease.Options{Names: kubelease.Plain}).NameOf("orders", key); !errors.Is(err, lock.ErrUnsupported) {
			t.Errorf("%s is named %q, %v, want a refusal", key, name, err)
		}
	}
}
