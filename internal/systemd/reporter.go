package systemd

import (
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
)

// lookEvery is the longest time between two looks at the node.
const lookEvery = 5 * time.Second

// startExtension is how much time each message of a node that starts asks for.
const startExtension = time.Minute

// teller knows what the manager was told, and tells what is new. One goroutine
// owns it.
type teller struct {
	send func(message string) error
	// every is the time between two ticks: half of what the watchdog allows, or
	// less.
	every    time.Duration
	watchdog time.Duration // 0: there is none

	log  *slog.Logger // nil before the first node
	node Node         // nil before the first, and after the end

	ready   bool // it was told that the present node polls
	up      bool // the manager knows that the start has ended
	reloads bool // and, from up on, that a reload goes on
	stops   bool
	trouble string   // of the last reload
	status  string   // the last that was sent
	said    []string // the loops that hang, as the log has it
	dumped  bool     // the log has the stacks
	unheard bool     // the last message failed, and the log says so
}

func newTeller(watchdog time.Duration, send func(string) error) *teller {
	every := lookEvery
	if watchdog > 0 {
		every = min(every, watchdog/2)
	}
	return &teller{send: send, every: every, watchdog: watchdog}
}

// awaited is closed when the node polls; nil when that is nothing new.
func (t *teller) awaited() <-chan struct{} {
	if t.node == nil || t.ready || t.reloads || t.stops {
		return nil
	}
	return t.node.Polling()
}

func (t *teller) watch(node Node, log *slog.Logger) {
	t.node, t.log, t.ready = node, log, false
}

// polls is called when the node has begun to work.
func (t *teller) polls() {
	ready := ""
	if !t.up {
		ready = daemon.SdNotifyReady
	}
	t.ready, t.up = true, true
	t.tell(ready, statusLine(t.doing()))
}

func (t *teller) reloading() {
	t.ready, t.reloads = false, true
	if t.up { // Before, the manager waits for the end of the start, and for nothing else.
		t.tell(daemon.SdNotifyReloading, strings.TrimSpace(daemon.SdNotifyMonotonicUsec()), statusLine(t.doing()))
	}
}

// reloaded ends the reload, also when the node waits for its database: the
// manager makes every further reload wait for the end of this one, which may be
// the one that names a better database.
func (t *teller) reloaded(trouble string) {
	t.reloads, t.trouble = false, trouble
	if t.up { // Before, it is the start that goes on.
		t.tell(daemon.SdNotifyReady, statusLine(t.doing()))
	}
}

// stopping says it of a node that does not know yet. A short stop is over before
// the next look at it.
func (t *teller) stopping(within time.Duration) {
	t.stops = true
	t.tell(daemon.SdNotifyStopping, extend(within), statusLine("Stopping"))
}

func (t *teller) ending(why string) {
	t.node = nil
	t.tell(statusLine(why))
}

// tick looks at the node and tells what has to be told again and again.
func (t *teller) tick() {
	if t.node == nil {
		return
	}
	var lines []string
	turns := t.turns()
	if line := statusLine(t.doing()); line != t.status {
		lines = append(lines, line)
	}
	if turns {
		if (!t.up || t.reloads) && !t.stops {
			lines = append(lines, extend(startExtension))
		}
		if t.watchdog > 0 {
			lines = append(lines, daemon.SdNotifyWatchdog)
		}
	}
	t.tell(lines...)
}

// turns reports whether no loop hangs; it logs those that do.
func (t *teller) turns() bool {
	stuck := t.node.Stuck()
	if !slices.Equal(stuck, t.said) {
		t.said = stuck
		t.sayStuck(stuck)
	}
	return len(stuck) == 0
}

func (t *teller) sayStuck(stuck []string) {
	if len(stuck) == 0 {
		t.log.Info("All loops turn again; the service manager is told so")
		return
	}
	t.log.Error("A loop hangs; the service manager is not told that this process is well, and will end it", "loops", stuck, "watchdog", t.watchdog)
	if t.dumped {
		return
	}
	t.dumped = true
	logStacks(t.log)
}

// doing is the line about the node.
func (t *teller) doing() string {
	if t.node == nil {
		return "Starting"
	}
	line := t.node.Doing()
	if len(t.said) > 0 {
		line = "Hangs: " + strings.Join(t.said, ", ") + "; the log has the stacks"
	}
	if t.reloads {
		return "Reloads its configuration: " + line
	}
	if t.trouble != "" {
		line += "; reload refused: " + t.trouble
	}
	return line
}

// tell sends the lines as one message; none are no message.
func (t *teller) tell(lines ...string) {
	lines = slices.DeleteFunc(lines, func(line string) bool { return line == "" })
	if len(lines) == 0 {
		return
	}
	err := t.send(strings.Join(lines, "\n"))
	if err == nil {
		t.unheard = false
		for _, line := range lines {
			if strings.HasPrefix(line, statusKey) {
				t.status = line
			}
		}
		return
	}
	if t.log != nil && !t.unheard {
		t.unheard = true
		t.log.Warn("The service manager cannot be told how the node is", "err", err)
	}
}

// extend asks for more time before the present start, reload or stop is given up.
func extend(by time.Duration) string {
	return "EXTEND_TIMEOUT_USEC=" + strconv.FormatInt(by.Microseconds(), 10)
}
