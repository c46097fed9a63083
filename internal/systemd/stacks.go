package systemd

import (
	"log/slog"
	"runtime"
	"strings"
)

// mostStacks bounds what a dump may take, in bytes.
const mostStacks = 1 << 20

// logStacks writes where each goroutine of the process is, a record each: a
// journal breaks lines that are too long.
func logStacks(log *slog.Logger) {
	buf := make([]byte, mostStacks)
	for _, stack := range stacks(string(buf[:runtime.Stack(buf, true)])) {
		log.Error("Stack of a goroutine", "stack", stack)
	}
}

// stacks takes a dump apart, and the arguments of calls out of it: they may be
// of anybody's data.
func stacks(dump string) []string {
	all := strings.Split(strings.TrimSpace(dump), "\n\n")
	for i, stack := range all {
		lines := strings.Split(stack, "\n")
		for j, line := range lines {
			lines[j] = withoutArguments(line)
		}
		all[i] = strings.Join(lines, "\n")
	}
	return all
}

// withoutArguments returns "main.f(0x1, {0x2, 0x3})" as "main.f(…)", and every
// line that is no call as it is.
func withoutArguments(line string) string {
	open := strings.LastIndexByte(line, '(')
	if strings.HasPrefix(line, "\t") || open < 0 || !strings.HasSuffix(line, ")") {
		return line
	}
	return line[:open] + "(…)"
}
