package systemd_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/observerd/observerd/internal/admin/sample"
	"github.com/observerd/observerd/test/kit/daemon"
	"github.com/observerd/observerd/test/kit/pgtest"
	"github.com/observerd/observerd/test/kit/servertest"
	"github.com/observerd/observerd/test/kit/waittest"
)

func TestMain(m *testing.M) {
	servertest.SideBySide(10)
	waittest.VerifyNoLeaks(programs{pgtest.Wrap(m)})
}

// built are the programs under test, by how they are built. Tests share them.
var built struct {
	folder        string
	plain, faulty func() (string, error)
}

// programs removes after the tests what was built for them.
type programs struct{ tests pgtest.Runner }

// Run implements goleak.TestingM.
func (p programs) Run() int {
	folder, err := os.MkdirTemp("", "observerd-systemd-")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(folder) }()
	built.folder = folder
	built.plain = sync.OnceValues(func() (string, error) {
		return build(daemon.BuildOptions{Out: filepath.Join(folder, "observerd")})
	})
	built.faulty = sync.OnceValues(buildFaulty)
	return p.tests.Run()
}

func build(o daemon.BuildOptions) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	return o.Out, daemon.Build(ctx, o)
}

// relayFile is the source of the relay, seen from here, and what its loop
// says of the time that it may take for a step.
const (
	relayFile     = "../relay/relay.go"
	relayPatience = "d = 2*d + time.Minute"
)

// buildFaulty makes the program with failpoints, and with a relay that counts as
// hanging sooner: a test cannot wait for two minutes.
func buildFaulty() (string, error) {
	text, err := os.ReadFile(relayFile)
	if err != nil {
		return "", err
	}
	if strings.Count(string(text), relayPatience) != 1 {
		return "", errors.New(relayFile + " does not say " + relayPatience + " any more; say here how its loop is made less patient")
	}
	file, err := filepath.Abs(relayFile)
	if err != nil {
		return "", err
	}
	replaced := filepath.Join(built.folder, "relay.go")
	overlay := filepath.Join(built.folder, "overlay.json")
	err = errors.Join(
		os.WriteFile(replaced, []byte(strings.Replace(string(text), relayPatience, "d = d/10 + 10*time.Second", 1)), 0o600),
		os.WriteFile(overlay, []byte(`{"Replace":{"`+file+`":"`+replaced+`"}}`), 0o600))
	if err != nil {
		return "", err
	}
	return build(daemon.BuildOptions{Out: filepath.Join(built.folder, "observerd-faulty"), Tags: "failpoints", Overlay: overlay})
}

// place is a folder with a sample warehouse and a node's configuration for it.
type place struct {
	folder string
	config daemon.Config
	// listen is the address of the status page; empty is a free port.
	listen string
}

func newPlace(t *testing.T, database string) *place {
	t.Helper()
	p := &place{folder: t.TempDir()}
	warehouse, err := sample.Open(t.Context(), filepath.Join(p.folder, "warehouse.db"), 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := warehouse.Close(); err != nil {
		t.Fatal(err)
	}
	p.config = daemon.Config{
		Node: "a", Database: database,
		Sources:   map[string]string{"warehouse": "sqlite:warehouse.db"},
		Observers: []string{`{id: orders, type: order, source: warehouse, table: orders, key: order_id, timestamp: updated_at, overlap: 1m}`},
		Files:     map[string]string{"file": filepath.Join(p.folder, "events.jsonl")},
	}
	p.write(t)
	return p
}

func (p *place) write(t *testing.T) {
	t.Helper()
	if err := p.config.Write(p.folder); err != nil {
		t.Fatal(err)
	}
	if p.listen == "" {
		return
	}
	text, err := os.ReadFile(filepath.Join(p.folder, "config.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	p.writeText(t, strings.Replace(string(text), "127.0.0.1:0", p.listen, 1))
}

// writeText writes a configuration that the program may not accept.
func (p *place) writeText(t *testing.T, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(p.folder, "config.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// start starts a process that is killed at the end of the test, if not before.
func (p *place) start(t *testing.T, program func() (string, error), env ...string) *daemon.Process {
	t.Helper()
	binary, err := program()
	if err != nil {
		t.Fatal(err)
	}
	process, err := daemon.Start(context.WithoutCancel(t.Context()), daemon.Options{Binary: binary, Name: "a", Folder: p.folder, Env: env})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		process.Kill()
		if t.Failed() {
			t.Logf("the log ends with:\n%s", process.Log.Tail(20_000))
		}
	})
	return process
}

// ends waits for the end of the process, which must have that exit code.
func ends(t *testing.T, process *daemon.Process, want int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	code, err := process.Wait(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if code != want {
		t.Errorf("exit code %d, want %d", code, want)
	}
}

// metrics asks again while the process does not answer, as a busy machine's may.
func metrics(t *testing.T, process *daemon.Process) (m daemon.Metrics) {
	t.Helper()
	eventually(t, func() (err error) {
		m, err = process.Metrics(t.Context())
		return err
	})
	return m
}
