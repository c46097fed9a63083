package main

import (
	"archive/zip"
	"bytes"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The module as a proxy has it.
const (
	ourModule = "github.com/observerd/observerd"
	proxied   = "v0.0.1"
)

// TestModuleFromAProxy uses a version as others do, from a module proxy that is a folder.
func TestModuleFromAProxy(t *testing.T) {
	t.Parallel()
	environ := proxy(t)
	t.Run("install", func(t *testing.T) { goInstall(t, environ) })
	t.Run("import", func(t *testing.T) { goGet(t, environ) })
}

// goInstall installs the program. Go refuses it when go.mod has a replace or an exclude,
// or when a file is missing from what git has.
func goInstall(t *testing.T, environ []string) {
	bin := t.TempDir()
	goCommand(t, bin, append(environ, "GOBIN="+bin), "install", ourModule+"/cmd/observerd@"+proxied) // Outside of our own module.
	if out, err := exec.CommandContext(t.Context(), filepath.Join(bin, "observerd"), "version").Output(); err != nil || !strings.HasPrefix(string(out), "observerd "+proxied+" ") {
		t.Errorf("%v: %s", err, out)
	}
}

// locksProgram takes a lock, in a module of its own.
const locksProgram = `package main

import (
	"context"
	"fmt"

	"github.com/observerd/observerd/locks"
	"github.com/observerd/observerd/locks/lockstest"
)

func main() {
	ctx := context.Background()
	m, err := locks.Open(ctx, locks.Options{Provider: new(lockstest.Memory).Provider(), Node: "worker"})
	if err != nil {
		panic(err)
	}
	fmt.Println(m.Do(ctx, locks.Name("nightly"), func(_ context.Context, l *locks.Lease) error {
		fmt.Println(l.Descriptor())
		return nil
	}))
}
`

// foreign are libraries that the suites may use, and the program's module may not require. The
// go command tells all modules that require ours of each module in its go.mod.
var foreign = []string{
	"github.com/anishathalye/porcupine", "github.com/cloudevents/sdk-go/v2", "github.com/compose-spec/compose-go/v2",
	"github.com/distribution/reference", "github.com/moby/patternmatcher", "github.com/prometheus/prometheus",
}

// goGet gets package locks for a program of another module, which runs, and is told of no
// foreign library.
func goGet(t *testing.T, environ []string) {
	folder := t.TempDir()
	for name, text := range map[string]string{"go.mod": "module example.com/worker\n\ngo 1.26.7\n", "main.go": locksProgram} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	goCommand(t, folder, environ, "get", ourModule+"/locks@"+proxied, ourModule+"/locks/lockstest@"+proxied)
	if out := goCommand(t, folder, environ, "run", "."); out != "lock:exclusive:name:processing:nightly\n<nil>\n" {
		t.Errorf("the program says %q", out)
	}
	known := strings.Fields(goCommand(t, folder, environ, "list", "-m", "-f", "{{.Path}}", "all"))
	sums, err := os.ReadFile(filepath.Join(folder, "go.sum"))
	if err != nil || !slices.Contains(known, ourModule) || !bytes.Contains(sums, []byte(ourModule+" ")) {
		t.Fatalf("%v: the program's modules are %q", err, known)
	}
	for _, library := range foreign {
		if slices.Contains(known, library) || bytes.Contains(sums, []byte(library+" ")) {
			t.Errorf("a program that imports locks is told of %s, which belongs into the go.mod of test/suite", library)
		}
	}
}

// goCommand runs the go command in the folder and returns what it prints.
func goCommand(t *testing.T, folder string, environ []string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", args...)
	var said bytes.Buffer
	cmd.Dir, cmd.Env, cmd.Stderr = folder, environ, &said
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go %s: %v: %s", strings.Join(args, " "), err, &said)
	}
	return string(out)
}

// proxy makes a folder that is a module proxy with this version, and returns the
// environment of a go command that asks it.
func proxy(t *testing.T) []string {
	t.Helper()
	folder := t.TempDir()
	versions := filepath.Join(folder, ourModule, "@v")
	if err := os.MkdirAll(versions, 0o750); err != nil {
		t.Fatal(err)
	}
	mod, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{
		"list":            []byte(proxied + "\n"),
		proxied + ".info": []byte(`{"Version": "` + proxied + `"}`),
		proxied + ".mod":  mod,
		proxied + ".zip":  moduleZip(t, ourModule+"@"+proxied),
	} {
		if err := os.WriteFile(filepath.Join(versions, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	downloaded, usual, _ := strings.Cut(strings.TrimSpace(goCommand(t, folder, os.Environ(), "env", "GOMODCACHE", "GOPROXY")), "\n")
	return append(os.Environ(), "GOMODCACHE="+t.TempDir(), "GOFLAGS=-trimpath -modcacherw", "GOWORK=off", "GOSUMDB=off",
		"GOPROXY=file://"+folder+",file://"+filepath.Join(downloaded, "cache", "download")+","+usual)
}

// moduleZip packs the files that git knows or would add, but those of modules below.
func moduleZip(t *testing.T, prefix string) []byte {
	t.Helper()
	git := exec.CommandContext(t.Context(), "git", "-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	git.Dir = "../.."
	out, err := git.Output()
	if err != nil {
		t.Fatal(err)
	}
	files := strings.Split(strings.TrimRight(string(out), "\x00"), "\x00")
	var packed bytes.Buffer
	w := zip.NewWriter(&packed)
	for _, name := range files {
		if ofModuleBelow(files, name) {
			continue
		}
		text, err := os.ReadFile(filepath.Join("../..", name))
		if os.IsNotExist(err) {
			continue // It was just removed.
		}
		entry, entryErr := w.Create(prefix + "/" + name)
		if err != nil || entryErr != nil {
			t.Fatal(err, entryErr)
		}
		if _, err := entry.Write(text); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return packed.Bytes()
}

func ofModuleBelow(files []string, name string) bool {
	for folder := path.Dir(name); folder != "."; folder = path.Dir(folder) {
		if slices.Contains(files, folder+"/go.mod") {
			return true
		}
	}
	return false
}
