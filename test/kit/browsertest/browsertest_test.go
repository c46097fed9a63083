package browsertest

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/observerd/observerd/test/kit/servertest"
	"github.com/observerd/observerd/test/kit/waittest"
)

func TestMain(m *testing.M) { waittest.VerifyNoLeaks(Wrap(m)) }

// TestBrowser asks a browser for its name, and wants that it is nobody's but its account's.
func TestBrowser(t *testing.T) {
	t.Parallel()
	b := Start(t)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+b.Address()+"/json/version", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var version struct {
		Browser string
		URL     string `json:"webSocketDebuggerUrl"`
	}
	if err := json.NewDecoder(response.Body).Decode(&version); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(version.Browser, "Chrome/") || version.URL != b.URL() {
		t.Errorf("%+v at %s", version, b.URL())
	}
}

func TestCloseLeavesNothing(t *testing.T) {
	t.Parallel()
	parent := servertest.OpenDir(t)
	b, err := open(t.Context(), parent)
	if err != nil {
		t.Fatal(err)
	}
	profile, err := os.ReadDir(b.Dir.Data())
	if err != nil || len(profile) < 2 {
		t.Errorf("the browser's profile is not in its folder: %v, %v", profile, err)
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	servertest.WantEmpty(t, parent)
}

var victims = servertest.Victims{
	Test: "TestVictim", Env: "BROWSERTEST_VICTIM_DIR", Pid: filepath.Join("data", kind.Pid),
	Open: func(ctx context.Context, dir string) (servertest.Server, error) { return open(ctx, dir) },
}

func TestKilledTestsLeaveNoBrowser(t *testing.T) {
	t.Parallel()
	victims.Check(t)
}

func TestVictim(t *testing.T) { victims.Be(t) }

func TestBindirIsNotReplacedByAnother(t *testing.T) {
	t.Setenv("BROWSERTEST_BINDIR", t.TempDir())
	if _, err := Open(t.Context()); !errors.Is(err, errNoProgram) {
		t.Errorf("an empty BROWSERTEST_BINDIR gave %v, want errNoProgram", err)
	}
}

func TestInstallNamesTheWaysOut(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	p := product()
	p.Folders = nil
	_, err := p.Programs(t.Context())
	for _, word := range []string{"BROWSERTEST_BINDIR", "BROWSERTEST_URL", "chromium"} {
		if err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("the error %v does not mention %s", err, word)
		}
	}
}
