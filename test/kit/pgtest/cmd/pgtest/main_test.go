package main

import (
	"strings"
	"testing"

	"github.com/observerd/observerd/test/kit/servertest"
)

// inMemory exits with 7 if the command line of the server names a folder in memory, as
// far as there is one.
var inMemory = `port=${PGTEST_URL##*:}; port=${port%%/*}
	cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\0' ' ' | grep -q -- "-D ` + servertest.Memory() + `/[^ ]* -p $port " && exit 7`

func TestRunGivesTheClusterAndTakesTheCode(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		args   []string
		code   int
		stderr string
	}{
		"success":     {args: []string{"sh", "-c", `case "$PGTEST_URL $MARIATEST_URL" in "postgres://postgres@127.0.0.1:"*" mysql://root@127.0.0.1:"*) ;; *) exit 1; esac`}},
		"its code":    {args: []string{"sh", "-c", "exit 7"}, code: 7},
		"in memory":   {args: []string{"-memory", "sh", "-c", inMemory}, code: 7},
		"no command":  {code: exitUsage, stderr: "usage: pgtest [-memory] COMMAND"},
		"only a flag": {args: []string{"-memory"}, code: exitUsage, stderr: "usage: pgtest [-memory] COMMAND"},
		"not a file":  {args: []string{"/no/such/command"}, code: exitFailed, stderr: "/no/such/command"},
		"its own end": {args: []string{"sh", "-c", "kill -KILL $$"}, code: exitFailed, stderr: "signal: killed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var stderr strings.Builder
			if code := run(test.args, &stderr); code != test.code {
				t.Errorf("exit code %d, want %d: %s", code, test.code, stderr.String())
			}
			if !strings.Contains(stderr.String(), test.stderr) {
				t.Errorf("stderr is %q, want %q in it", stderr.String(), test.stderr)
			}
		})
	}
}
