package systemd

import (
	"log/slog"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/coreos/go-systemd/v22/daemon"

	"github.com/observerd/observerd/internal/fn"
)

// refreshEvery is the longest time between two refreshes.
const refreshEvery = 5 * time.Second

// startExtension is the time that each message of a node that starts asks for.
const startExtension = time.Minute

// reporter sends the manager what has changed. One goroutine owns it.
type reporter struct {
	send func(message string) error
	// every is the time between two refreshes: at most half of the watchdog's time.
	every    time.Duration
	watchdog time.Duration // 0: there is none

	log  *slog.Logger // nil before the first node
	node Node         // nil before the first, and after the end

	ready   bool // the manager knows that the present node polls
	up      bool // it knows that the start has ended
	reloads bool // a reload runs; from up on the manager knows
	stops   bool
	refusal string   // why the last reload was refused; empty: it was not
	status  string   // the last status that was sent
	stuck   []string // the loops that hang, as logged
	dumped  bool     // the stacks are logged
	failed  bool     // the last message failed, and that is logged
}

func newReporter(watchdog time.Duration, send func(string) error) *reporter {
	every := refreshEvery
	if watchdog > 0 {
		every = min(every, watchdog/2)
	}
	return &reporter{send: send, every: every, watchdog: watchdog}
}

// polling returns a channel that is closed when the node polls; nil when the manager
// knows that already.
func (r *reporter) polling() <-chan struct{} {
	if r.node == nil || r.ready || r.reloads || r.stops {
		return nil
	}
	return r.node.Polling()
}

// polls reports that the node has begun to work.
func (r *reporter) polls() {
	ready := ""
	if !r.up {
		ready = daemon.SdNotifyReady
	}
	r.ready, r.up = true, true
	r.report(ready, statusLine(r.nodeStatus()))
}

func (r *reporter) reloading() {
	r.ready, r.reloads = false, true
	if r.up { // Before, the manager waits for the end of the start.
		r.report(daemon.SdNotifyReloading, strings.TrimSpace(daemon.SdNotifyMonotonicUsec()), statusLine(r.nodeStatus()))
	}
}

// reloaded ends the reload, also when the node waits for its database: every further
// reload waits for the end of this one, also a reload that names a better database.
func (r *reporter) reloaded(refusal string) {
	r.reloads, r.refusal = false, refusal
	if r.up { // Before, the start goes on.
		r.report(daemon.SdNotifyReady, statusLine(r.nodeStatus()))
	}
}

// refresh sends a status that has changed, and the messages that are repeated as long
// as no loop hangs.
func (r *reporter) refresh() {
	if r.node == nil {
		return
	}
	var lines []string
	healthy := r.healthy()
	if line := statusLine(r.nodeStatus()); line != r.status {
		lines = append(lines, line)
	}
	if healthy {
		if (!r.up || r.reloads) && !r.stops {
			lines = append(lines, extend(startExtension))
		}
		if r.watchdog > 0 {
			lines = append(lines, daemon.SdNotifyWatchdog)
		}
	}
	r.report(lines...)
}

// healthy reports whether no loop hangs; it logs changes.
func (r *reporter) healthy() bool {
	stuck := r.node.Stuck()
	if !slices.Equal(stuck, r.stuck) {
		r.stuck = stuck
		r.logStuck(stuck)
	}
	return len(stuck) == 0
}

func (r *reporter) logStuck(stuck []string) {
	if len(stuck) == 0 {
		r.log.Info("All loops turn again; the service manager is notified")
		return
	}
	r.log.Error("A loop hangs; the service manager is not notified any more, and will end this process", "loops", stuck, "watchdog", r.watchdog)
	if r.dumped {
		return
	}
	r.dumped = true
	logStacks(r.log)
}

// nodeStatus returns the line about the node.
func (r *reporter) nodeStatus() string {
	if r.node == nil {
		return "Starting"
	}
	line := r.node.Doing()
	if len(r.stuck) > 0 {
		line = "Hangs: " + strings.Join(r.stuck, ", ") + "; the log has the stacks"
	}
	if r.reloads {
		return "Reloads its configuration: " + line
	}
	if r.refusal != "" {
		line += "; reload refused: " + r.refusal
	}
	return line
}

// report sends the lines as one message; without lines it sends none.
func (r *reporter) report(lines ...string) {
	lines = slices.DeleteFunc(lines, func(line string) bool { return line == "" })
	if len(lines) == 0 {
		return
	}
	err := r.send(strings.Join(lines, "\n"))
	if err == nil {
		r.failed = false
		for _, line := range lines {
			if strings.HasPrefix(line, statusKey) {
				r.status = line
			}
		}
		return
	}
	if r.log != nil && !r.failed {
		r.failed = true
		r.log.Warn("The service manager cannot be notified of the state of the node", "err", err)
	}
}

// extend asks for more time until the present start, reload or stop times out.
func extend(by time.Duration) string {
	return "EXTEND_TIMEOUT_USEC=" + strconv.FormatInt(by.Microseconds(), 10)
}

const statusKey = "STATUS="

// maxStatus limits a status, in bytes: the manager drops messages over 4096.
const maxStatus = 1024

// statusLine returns the status message with the text. A line break would end it, and
// the rest would be another message.
func statusLine(text string) string { return statusKey + oneLine(text) }

// oneLine returns the text without line breaks, without invisible characters, those
// that change the direction of writing, and bytes that are not UTF-8, cut where it is
// too long.
func oneLine(text string) string {
	text = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) || r == utf8.RuneError {
			return ' '
		}
		return r
	}, text)
	text = strings.Join(strings.Fields(text), " ")
	if len(text) <= maxStatus {
		return text
	}
	return strings.ToValidUTF8(text[:maxStatus-len("…")], "") + "…"
}

// maxDump limits a dump of the stacks, in bytes.
const maxDump = 1 << 20

// logStacks logs the stack of each goroutine of the process, in a record each: a
// journal breaks lines that are too long.
func logStacks(log *slog.Logger) {
	buf := make([]byte, maxDump)
	for _, stack := range stacks(string(buf[:runtime.Stack(buf, true)])) {
		log.Error("Stack of a goroutine", "stack", stack)
	}
}

// stacks splits a dump, and removes the arguments of calls: they may hold data of
// users.
func stacks(dump string) []string {
	return fn.Each(strings.Split(strings.TrimSpace(dump), "\n\n"), func(stack string) string {
		return strings.Join(fn.Each(strings.Split(stack, "\n"), withoutArguments), "\n")
	})
}

// withoutArguments returns "main.f(0x1, {0x2, 0x3})" as "main.f(…)", and a line that
// is not a call as it is.
func withoutArguments(line string) string {
	open := strings.LastIndexByte(line, '(')
	if strings.HasPrefix(line, "\t") || open < 0 || !strings.HasSuffix(line, ")") {
		return line
	}
	return line[:open] + "(…)"
}
