package doctor_test

import (
	"context"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/doctor"
	"github.com/observerd/observerd/test/kit/springtest"
)

// TestClocksOfSpring watches clients that lock exactly as Spring does, in
// several zones and with clocks that are wrong.
func TestClocksOfSpring(t *testing.T) {
	t.Parallel()
	east, west := time.FixedZone("IST", 5*3600+1800), time.FixedZone("EST", -5*3600)
	slow := func() time.Time { return time.Now().Add(-30 * time.Second) }
	for _, c := range []struct {
		name       string
		generation springtest.Generation
		zone       *time.Location
		clock      func() time.Time
		check      string
		severity   doctor.Severity
		parts      []string
	}{
		{"5 in UTC", springtest.Spring5, nil, nil, "rows-in-the-past", doctor.OK, []string{"the clocks of foreign holders are right"}},
		{"5 in India", springtest.Spring5, east, nil, "rows-in-the-future", doctor.Problem, []string{"5h30m", "Spring Integration up to 5.5"}},
		{"5 in New York", springtest.Spring5, west, nil, "rows-in-the-past", doctor.Problem, []string{"time zone", "it excludes nobody"}},
		{"6 in New York", springtest.Spring6, west, nil, "rows-in-the-past", doctor.OK, []string{"the clocks of foreign holders are right"}},
		{"6 with a slow clock", springtest.Spring6, nil, slow, "rows-in-the-past", doctor.Warning, []string{"free that much too early"}},
		{"7 in New York", springtest.Spring7, west, nil, "rows-in-the-past", doctor.OK, []string{"the clocks of foreign holders are right"}},
		{"7 with a slow clock", springtest.Spring7, nil, slow, "rows-in-the-past", doctor.Warning, []string{"free that much too early"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := postgres(t, c.generation.Table())
			o := springtest.Options{URL: p.url, Generation: c.generation, TTL: time.Minute, Zone: c.zone, Clock: c.clock}
			found := p.watched(t, func() func() time.Duration { return p.spring(t, o) }, takenOnce)
			says(t, found, c.check, c.severity, c.parts...)
			says(t, found, "keys", doctor.OK)
			if c.severity == doctor.OK {
				healthy(t, found, superuser, "nodes")
			}
		})
	}
}

// spring has a Java node take the lock of the orders and give it back.
func (p *subject) spring(t *testing.T, o springtest.Options) (stop func() (longest time.Duration)) {
	t.Helper()
	repository, err := springtest.NewRepository(o)
	if err != nil {
		t.Fatal(err)
	}
	registry := springtest.NewRegistry(repository)
	end := again(t, func(ctx context.Context) (took time.Duration, err error) {
		began := time.Now()
		locked, err := registry.TryLock(t.Context(), orderLock, 0)
		took = time.Since(began)
		pause(ctx, 80*time.Millisecond)
		if locked {
			err = registry.Unlock(t.Context(), orderLock)
		}
		pause(ctx, 40*time.Millisecond)
		return took, err
	})
	return func() time.Duration {
		defer func() { _ = repository.Disconnect() }()
		return end()
	}
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
