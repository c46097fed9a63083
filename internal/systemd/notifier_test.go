package systemd

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

const watchdog = 30 * time.Second

func TestAStartIsGivenTimeAsLongAsLoopsTurn(t *testing.T) {
	story(t, watchdog, func(t *testing.T, x *fake) {
		for range 100 {
			said := x.during(startExtension / 2)
			has(t, said, "EXTEND_TIMEOUT_USEC=60000000", "WATCHDOG=1")
			lacks(t, said, "READY=1")
		}
		x.set(func() { x.stuck = []string{"start"} })
		x.during(refreshEvery)
		if said := x.during(time.Hour); said != "" {
			t.Errorf("a start that hangs is given more time:\n%s", said)
		}
		x.set(func() { x.stuck = nil })
		has(t, x.during(refreshEvery), "EXTEND_TIMEOUT_USEC=", "WATCHDOG=1")
	})
}

func TestReadyOnceWhenTheNodePolls(t *testing.T) {
	story(t, watchdog, func(t *testing.T, x *fake) {
		has(t, x.heard(), "STATUS=Waits")
		x.set(func() { x.does = "Polls 3 types" })
		close(x.polling)
		has(t, x.heard(), "READY=1\nSTATUS=Polls 3 types")
		said := x.during(time.Hour)
		lacks(t, said, "READY=1", "EXTEND_TIMEOUT_USEC", "STATUS=")
		if n := strings.Count(said, "WATCHDOG=1"); n < int(time.Hour/(watchdog/2)) {
			t.Errorf("the watchdog was fed %d times in an hour", n)
		}
		x.set(func() { x.does = "Waits for the database" })
		has(t, x.during(refreshEvery), "STATUS=Waits for the database")
	})
}

func TestWithoutAWatchdogThereIsNoneToFeed(t *testing.T) {
	story(t, 0, func(t *testing.T, x *fake) {
		close(x.polling)
		has(t, x.heard(), "READY=1")
		if said := x.during(time.Hour); said != "" {
			t.Errorf("nothing has changed, and the manager is told:\n%s", said)
		}
	})
}

func TestALoopThatHangsStarvesTheWatchdog(t *testing.T) {
	story(t, watchdog, func(t *testing.T, x *fake) {
		close(x.polling)
		has(t, x.during(watchdog), "WATCHDOG=1")
		x.set(func() { x.stuck = []string{"relay file", "schedule/order"} })
		has(t, x.during(refreshEvery), "STATUS=Hangs: relay file, schedule/order")
		if said := x.during(time.Hour); said != "" {
			t.Errorf("it hangs, and the manager is told:\n%s", said)
		}
		log := x.log.String()
		has(t, log, `"loops":["relay file","schedule/order"]`, "TestALoopThatHangsStarvesTheWatchdog")
		if n := strings.Count(log, "Stack of a goroutine"); n < 2 || n != strings.Count(log, `"stack":"goroutine `) {
			t.Errorf("%d stacks:\n%s", n, log)
		}
		lacks(t, log, "(0x")

		x.set(func() { x.stuck = nil })
		has(t, x.during(refreshEvery), "WATCHDOG=1", "STATUS=Waits")
		before := x.log.Len()
		x.set(func() { x.stuck = []string{"heartbeat"} })
		x.during(time.Hour)
		again := x.log.String()[before:]
		has(t, again, `"loops":["heartbeat"]`)
		lacks(t, again, "Stack of a goroutine") // Once is enough.
	})
}

func TestReloadIsToldWithItsTime(t *testing.T) {
	story(t, watchdog, func(t *testing.T, x *fake) {
		x.set(func() { x.does = "Polls" })
		close(x.polling)
		x.heard()

		// The same node goes on.
		x.notifier.Reloading()
		said := x.heard()
		has(t, said, "RELOADING=1\nMONOTONIC_USEC=", "STATUS=Reloads its configuration")
		lacks(t, said, "READY=1", "\n\n")
		said = x.during(time.Minute)
		has(t, said, "EXTEND_TIMEOUT_USEC", "WATCHDOG=1")
		lacks(t, said, "READY=1")
		x.notifier.Reloaded("config.yaml:3: no such key")
		has(t, x.heard(), "READY=1\nSTATUS=Polls; reload refused: config.yaml:3: no such key")

		// Another node takes its place, and polls a while later. The reload is over
		// before: until then the manager would hold back the next one.
		other := &fake{does: "Waits for its database", polling: make(chan struct{})}
		x.notifier.Reloading()
		x.notifier.Watch(other, x.logger())
		x.notifier.Reloaded("")
		has(t, x.heard(), "RELOADING=1", "READY=1\nSTATUS=Waits for its database")
		said = x.during(time.Minute)
		has(t, said, "WATCHDOG=1")
		lacks(t, said, "READY=1", "EXTEND_TIMEOUT_USEC")
		other.set(func() { other.does = "Polls again" })
		close(other.polling)
		said = x.heard()
		has(t, said, "STATUS=Polls again")
		lacks(t, said, "READY=1")
	})
}

func TestReloadDuringTheStartIsPartOfIt(t *testing.T) {
	story(t, watchdog, func(t *testing.T, x *fake) {
		x.notifier.Reloading()
		x.notifier.Reloaded("")
		lacks(t, x.heard()+x.during(time.Minute), "RELOADING=1", "READY=1")
		close(x.polling)
		has(t, x.heard(), "READY=1")
	})
}

func TestTheEndIsExplained(t *testing.T) {
	story(t, watchdog, func(t *testing.T, x *fake) {
		close(x.polling)
		x.heard()
		x.set(func() { x.does = "Polls" }) // It is told to stop after the manager.
		x.notifier.Stopping(35 * time.Second)
		has(t, x.heard(), "STOPPING=1\nEXTEND_TIMEOUT_USEC=35000000\nSTATUS=Stopping")
		has(t, x.during(watchdog), "WATCHDOG=1")
		x.notifier.Ending("it was asked to")
		x.notifier.Close()
		if said := x.heard(); !strings.HasSuffix(said, "STATUS=it was asked to") {
			t.Errorf("the last that was told is not why:\n%s", said)
		}
	})
}

func TestAFailureBeforeThereIsANode(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		x := &fake{}
		n := start(newReporter(watchdog, x.send))
		n.Ending("the configuration is wrong")
		n.Close()
		n.Close()
		if said := x.heard(); said != "STATUS=the configuration is wrong" {
			t.Errorf("told %q", said)
		}
	})
}

func TestAManagerThatIsGoneIsNamedOnce(t *testing.T) {
	story(t, watchdog, func(t *testing.T, x *fake) {
		close(x.polling)
		x.heard()
		x.set(func() { x.deaf = true; x.does = "changed" })
		x.during(time.Hour)
		if n := strings.Count(x.log.String(), "cannot be notified"); n != 1 {
			t.Errorf("the log says it %d times:\n%s", n, x.log.String())
		}
		x.set(func() { x.deaf = false })
		has(t, x.during(refreshEvery), "STATUS=changed", "WATCHDOG=1")
	})
}

func TestAManagerThatTakesNothingHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		n := start(newReporter(watchdog, func(string) error { <-release; return nil }))
		x := &fake{polling: make(chan struct{})}
		n.Watch(x, x.logger())
		began := time.Now()
		n.Stopping(time.Minute)
		n.Ending("why")
		n.Close()
		if took := time.Since(began); took != closeTimeout {
			t.Errorf("closed after %s", took)
		}
		close(release)
		<-n.done
	})
}

func TestNoManagerIsNothing(t *testing.T) {
	t.Setenv("NOTIFY_SOCKET", "")
	n, err := New()
	if n != nil || err != nil {
		t.Fatalf("notifier %v, %v", n, err)
	}
	n.Watch(&fake{}, nil)
	n.Reloading()
	n.Reloaded("")
	n.Stopping(time.Second)
	n.Ending("why")
	n.Close()
}

func TestAWatchdogThatCannotBeReadIsSaid(t *testing.T) {
	t.Setenv("NOTIFY_SOCKET", t.TempDir()+"/notify")
	t.Setenv("WATCHDOG_USEC", "soon")
	n, err := New()
	if err == nil {
		t.Error("no error")
	}
	n.Close()
}
