package systemd

import (
	"log/slog"
	"runtime"
	"strings"
)

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

// withoutArguments returns "main.f(0x1, {0x2, 0x3})" as "main.f(…)", and a line that
// is not a call as it is.
func withoutArguments(line string) string {
	open := strings.LastIndexByte(line, '(')
	if strings.HasPrefix(line, "\t") || open < 0 || !strings.HasSuffix(line, ")") {
		return line
	}
	return line[:open] + "(…)"
}
