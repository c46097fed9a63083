package pgtest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// What a client was answered may still be on its way to the logger when all
// others are killed.
func TestKillLeavesTheLoggerItsWork(t *testing.T) {
	t.Parallel()
	server := Start(t, Options{Settings: map[string]string{
		"logging_collector": "on", "log_directory": "log", "log_filename": "server.log", "log_statement": "all",
	}})
	logger := 0
	for _, child := range family(server.Process.Pid()) {
		if isLogger(child) {
			logger = child
		}
	}
	if logger == 0 {
		t.Fatal("the server has no logger")
	}
	conn, err := pgx.Connect(t.Context(), server.URL("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
	if err := syscall.Kill(logger, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(t.Context(), "SELECT 'last words'"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := server.Kill(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("killed beside a logger that hangs: %v, want to have waited for it", err)
	}
	if err := syscall.Kill(logger, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if err := vanished(t.Context(), []int{logger}); err != nil {
		t.Fatal(err)
	}
	log, err := os.ReadFile(filepath.Join(server.Dir.Data(), "log", "server.log"))
	if err != nil || !strings.Contains(string(log), "last words") {
		t.Errorf("the log has no last words: %v", err)
	}
}
