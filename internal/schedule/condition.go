package schedule

import (
	"cmp"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/turn"
)

// condition is what this node knows of an observer, by its own polls and by what the
// database has of those of others.
type condition struct {
	mu sync.Mutex
	shown
}

// shown are the facts of a condition.
type shown struct {
	// complete is since when the stream may lack rows, on this node's monotonic clock: all
	// that were committed in the source before are in the event log. Polls of this node say
	// so exactly; those of others are known without their horizon. Zero for unknown, as in a
	// first load.
	complete time.Time
	// noted is when this node last noted a success of its own, by the database's clock.
	noted       time.Time
	lastSuccess time.Time     // of this node; zero for never
	horizonLag  time.Duration // of this node's last poll, as lag is
	lag         time.Duration
	// behind is horizonLag of its last poll that was noted.
	behind   time.Duration
	last     turn.Stream // as this node's last turn found it
	outdated bool
	// failing is the class of the failure, onlyPoison the reason of the rows; empty for none.
	failing, onlyPoison string
}

// stored takes in what the database has of the stream; now is its clock.
func (c *condition) stored(s turn.Stream, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last, c.failing = s, ""
	if s.Failures > 0 {
		c.failing = cmp.Or(s.FailureClass, string(observer.ClassUnknown))
	}
	if s.OKAt.IsZero() || s.Paused {
		c.complete = time.Time{}
		return
	}
	complete := time.Now().Add(s.OKAt.Sub(now) - max(s.Lag, c.behind))
	if c.complete.IsZero() && s.Lag == 0 || !c.complete.IsZero() && s.OKAt.After(c.noted) && complete.After(c.complete) {
		c.complete = complete
	}
}

// ended takes in how a poll of this node has ended. One that met no row says nothing of
// rows that are poison.
func (c *condition) ended(stats observer.Stats, outcome turn.Outcome, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.outdated = outcome == turn.Outdated
	switch outcome {
	case turn.OK:
		c.failing, c.lastSuccess, c.horizonLag, c.lag = "", time.Now(), stats.HorizonLag, stats.Lag
	case turn.Error, turn.Unreachable:
		c.failing = cmp.Or(string(observer.ClassOf(err)), string(observer.ClassUnknown))
	}
	if stats.OnlyPoison != "" || stats.Readable {
		c.onlyPoison = string(stats.OnlyPoison)
	}
}

// succeeded takes in a poll of this node that succeeded, when that was noted. One that left
// rows unread says only something of a stream that was complete before.
func (c *condition) succeeded(began, noted time.Time, stats observer.Stats) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.behind, c.noted = stats.HorizonLag, noted
	switch {
	case !stats.Full:
		c.complete = began.Add(-stats.HorizonLag)
	case stats.Lag > 0 && !c.complete.IsZero():
		c.complete = began.Add(-max(stats.Lag, stats.HorizonLag))
	}
}

// conditions, of all observers of a node, are a [prometheus.Collector] of their gauges and those of types.
type conditions struct {
	types   []Type
	clock   *clock
	created time.Time
	of      map[[2]string]*condition // by type and observer
}

func newConditions(types []Type, c *clock) *conditions {
	all := &conditions{types: types, clock: c, created: time.Now(), of: make(map[[2]string]*condition)}
	for _, typ := range types {
		for _, o := range typ.Observers {
			all.of[[2]string{typ.Name, o.ID()}] = &condition{}
		}
	}
	return all
}

func gaugeOf(labels ...string) func(name, help string) *prometheus.Desc {
	return func(name, help string) *prometheus.Desc { return prometheus.NewDesc(name, help, labels, nil) }
}

var (
	ofType     = gaugeOf("type")
	ofObserver = gaugeOf("type", "observer")
	withReason = gaugeOf("type", "observer", "reason")

	descInterval   = ofType("observerd_poll_interval_seconds", "Distance between the starts of a type's polls.")
	descTTL        = ofType("observerd_lock_ttl_seconds", "How long a type's lock outlives its last renewal.")
	descHeld       = ofType("observerd_lock_held_seconds", "For how long this node has held the type's lock; 0 when it does not.")
	descAcquired   = ofType("observerd_lock_last_acquired_age_seconds", "Time since this node last acquired the type's lock.")
	descActive     = ofType("observerd_poll_last_activity_age_seconds", "Time since this node last began, went on with or ended a poll of the type.")
	descCommitted  = ofType("observerd_chunk_last_committed_age_seconds", "Time since this node last committed a chunk of the type.")
	descDelay      = ofObserver("observerd_observer_interval_seconds", "Distance between the starts of an observer's polls.")
	descSuspended  = ofObserver("observerd_observer_suspended", "1 while no poll of the observer begins, because of not-between.")
	descSuccess    = ofObserver("observerd_poll_last_success_timestamp_seconds", "When this node last polled the observer with success; 0 for never.")
	descSuccessAge = ofObserver("observerd_poll_last_success_age_seconds", "Time since this node last polled the observer with success.")
	descPaused     = ofObserver("observerd_observer_paused", "1 when the observer was paused at this node's last turn of it.")
	descPauseEnd   = ofObserver("observerd_observer_pause_end_timestamp_seconds", "When the pause of the observer ends by itself, as this node's last turn of it found; 0 when it is not paused, or without an end.")
	descOutdated   = ofObserver("observerd_observer_outdated", "1 when this node left the observer alone at its last turn of it, because the other nodes define it in another way.")
	descLag        = ofObserver("observerd_observer_lag_seconds", "How far the rows lie behind the source's clock at which this node's last poll of the observer ended full; 0 when it came to the end.")
	descHorizonLag = gaugeOf("observer")("observerd_horizon_lag_seconds", "How far the horizon of the last poll lay behind the source's clock.")
	descFreshness  = ofObserver("observerd_observer_freshness_seconds", "Time since the observer's stream was last known to be complete; absent before that, and while it is paused.")
	descFailing    = withReason("observerd_observer_failing", "1 while the polls of the observer fail, as this node's last turn of it found, with the class of the failure; else 0, without a class.")
	descOnlyPoison = withReason("observerd_observer_only_poison", "1 when this node's last poll of the observer that met rows made nothing but poison rows, with what makes them that; else 0, without a reason.")
)

// Describe adds what is absent at first.
func (c *conditions) Describe(out chan<- *prometheus.Desc) {
	out <- descFreshness
	prometheus.DescribeByCollect(c, out)
}

func (c *conditions) Collect(out chan<- prometheus.Metric) {
	for _, typ := range c.types {
		gauge := func(desc *prometheus.Desc, value float64) { collect(out, desc, value, typ.Name) }
		gauge(descInterval, typ.Interval.Seconds())
		gauge(descTTL, typ.Request.TTL.Seconds())
		gauge(descHeld, typ.Activity.held().Seconds())
		gauge(descAcquired, typ.Activity.age(acquired).Seconds())
		gauge(descActive, typ.Activity.age(active).Seconds())
		gauge(descCommitted, typ.Activity.age(committed).Seconds())
		for _, o := range typ.Observers {
			c.collect(out, typ, o.ID())
		}
	}
}

// collect passes on the gauges of an observer.
func (c *conditions) collect(out chan<- prometheus.Metric, typ Type, id string) {
	known := c.of[[2]string{typ.Name, id}]
	known.mu.Lock()
	one := known.shown
	known.mu.Unlock()
	gauge := func(desc *prometheus.Desc, value float64) { collect(out, desc, value, typ.Name, id) }
	gauge(descDelay, typ.delay(id).Seconds())
	gauge(descSuspended, truth(typ.suspended(id, c.clock.now())))
	gauge(descSuccess, unix(one.lastSuccess))
	gauge(descPaused, truth(one.last.Paused))
	gauge(descPauseEnd, unix(one.last.PausedUntil))
	gauge(descOutdated, truth(one.outdated))
	gauge(descLag, one.lag.Seconds())
	if !one.complete.IsZero() {
		gauge(descFreshness, max(0, time.Since(one.complete)).Seconds())
	}
	if one.lastSuccess.IsZero() {
		one.lastSuccess = c.created
	}
	gauge(descSuccessAge, time.Since(one.lastSuccess).Seconds())
	collect(out, descHorizonLag, one.horizonLag.Seconds(), id)
	collect(out, descFailing, truth(one.failing != ""), typ.Name, id, one.failing)
	collect(out, descOnlyPoison, truth(one.onlyPoison != ""), typ.Name, id, one.onlyPoison)
}

func collect(out chan<- prometheus.Metric, desc *prometheus.Desc, value float64, labels ...string) {
	out <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labels...)
}

// truth is the value of a gauge that says whether something is so.
func truth(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

// unix is a time in seconds, to a millisecond; 0 for the zero time.
func unix(t time.Time) float64 {
	if t.IsZero() {
		return 0
	}
	return float64(t.UnixMilli()) / 1000
}
