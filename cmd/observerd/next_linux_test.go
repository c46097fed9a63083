package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/observerd/observerd/test/kit/githubtest"
)

// working is exec for the next issue, in a folder with a provider of the server's issues.
func working(t *testing.T, s *githubtest.Server, token string, flags []string, script string) *exec.Cmd {
	t.Helper()
	folder := t.TempDir()
	config := fmt.Sprintf("locks:\n  subjects: [issue]\n  providers: [{id: tasks, type: github, repository: %s, url: '%s'}]\n", githubtest.Repository, s.URL())
	if err := os.WriteFile(filepath.Join(folder, "config.yaml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	args := append([]string{"exec", "--provider", "tasks", "--next-issue", "label:ready", "--wait", "0s"}, flags...)
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), "/proc/self/exe")
	cmd.Args, cmd.Dir = slices.Concat([]string{"observerd"}, args, []string{"--", "sh", "-c", script, "task", "{issue}"}), folder
	cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0", "GH_TOKEN="+token)
	return cmd
}

func TestExecTakesTheNextIssue(t *testing.T) {
	t.Parallel()
	s := githubtest.Start(t)
	token := s.Token("bot", githubtest.Push)
	run := func(code int, says string, flags []string, script string) {
		t.Helper()
		output, err := working(t, s, token, flags, script).CombinedOutput()
		got := 0
		if ended, ok := errors.AsType[*exec.ExitError](err); ok {
			got = ended.ExitCode()
		}
		if got != code || !strings.Contains(string(output), says) || strings.Contains(string(output), token) {
			t.Errorf("exit code %d, want %d: %s", got, code, output)
		}
	}
	run(exitNotAcquired, "no task is free", nil, "exit 3")
	n := s.Issue("import", "ready")
	run(0, fmt.Sprintf("issue %d, fence 1, lock:exclusive:issue:processing:%d", n, n), nil, `echo "issue $1, fence $LOCK_FENCING_TOKEN, $LOCK_NAME"`)
	if s.State(n) != "open" || len(s.Labels(n)) != 0 || len(s.Assignees(n)) != 0 {
		t.Errorf("done: %s, labels %v, assignees %v", s.State(n), s.Labels(n), s.Assignees(n))
	}
	n = s.Issue("import", "ready")
	run(0, "", []string{"--close", "--predicate", "writing"}, "true")
	if s.State(n) != "closed" {
		t.Errorf("closed: %s", s.State(n))
	}
	n = s.Issue("import", "ready")
	run(3, "", nil, "exit 3")
	if !slices.Contains(s.Labels(n), "failed") || len(s.Assignees(n)) != 0 {
		t.Errorf("failed: labels %v, assignees %v", s.Labels(n), s.Assignees(n))
	}
	run(exitNotAcquired, "no task is free", nil, "exit 4")
	for _, flags := range [][]string{{"--lock", "lock:exclusive:issue:processing:1"}, {"--resource", "1"}, {"--shared"}} {
		run(exitUsage, "", flags, "true")
	}
}

// A worker is killed: nobody gets its issue before its lease is over.
func TestIssueOfADeadWorkerIsKept(t *testing.T) {
	t.Parallel()
	s := githubtest.Start(t)
	token, n := s.Token("bot", githubtest.Push), s.Issue("import", "ready")
	dead := working(t, s, token, nil, "echo >held; exec sleep 3600")
	start(t, dead)
	waitForFile(t, filepath.Join(dead.Dir, "held"))
	if err := dead.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = dead.Wait()
	output, err := working(t, s, token, nil, "true").CombinedOutput()
	if err == nil || !strings.Contains(string(output), "no task is free") || !slices.Equal(s.Assignees(n), []string{"bot"}) {
		t.Errorf("while the lease lasts: %v: %s, assignees %v", err, output, s.Assignees(n))
	}
}
